"""Judges of a marker store: what its answers promise, what it stores, how it answers under faults."""
