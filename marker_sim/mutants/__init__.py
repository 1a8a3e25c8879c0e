"""Mutants: the reference with one line broken on purpose, each a released defect or a plausible mistake.

A mutant is a change of source text (`catalogue.py`), applied to a private copy of the reference's modules (`load.py`);
so it differs from the reference in exactly what its entry shows. A kit that does not kill them all is not to be
believed (`kill.py` says how fast each dies and by which guarantee).
"""
