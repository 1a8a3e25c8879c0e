"""Judges of a write path that is seen from outside alone: by storage requests, and by audits of its tables."""
