"""Baselines: the known violations of a system. baseline.py reads them; the shipped ones are JSON files."""
