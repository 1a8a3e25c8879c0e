"""Baselines: the violations of a system that are known. The shipped ones are JSON files."""
