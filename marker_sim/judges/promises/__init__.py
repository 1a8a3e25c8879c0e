"""Profiles: which guarantees an implementation promises, by class of faults. profiles.py reads them; the shipped ones
are TOML files.
"""
