"""Damages of a Hudi table as crashes, lost names and hasty operators leave them on disk.

Each takes a copy of a healthy table and says in a sentence what it did to it; `Unfit` when the table has nothing that
it could happen to. `DAMAGES` says which kinds of finding tell it. They were written from what is known of Hudi and from
docs/findings.md, not from the rules of the audit.
"""

from __future__ import annotations

from properties.audit import damaged_files, damaged_timeline
from properties.audit.damage import DAMAGES, Damage

__all__ = ["DAMAGES", "Damage", "damaged_files", "damaged_timeline"]
