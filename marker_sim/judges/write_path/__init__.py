"""Judges of a write path whose every step is in the history: attempts, reconcile, commit, rollback."""
