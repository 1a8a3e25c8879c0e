"""Mutants: the reference with one line broken on purpose, each a released defect or a plausible mistake.

mutant.py                the record of a mutant
serving.py, storing.py, codec.py, writing.py, rolling_back.py, found.py  the mutants, by part of the reference
load.py                  all mutants; builds a system from the changed source text

A mutant is a change of source text, applied to a private copy of the reference's modules, so it differs from the
reference in exactly what its entry shows.
"""
