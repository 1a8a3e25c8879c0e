"""Profiles: what an implementation promises, for each guarantee and class of faults. The shipped ones are TOML
files.
"""
