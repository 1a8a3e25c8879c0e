"""Failing plans made small: shrinker.py tries what operations.py and writes.py propose."""
