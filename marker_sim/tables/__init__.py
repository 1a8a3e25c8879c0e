"""Reads a Hudi table from outside, whichever program wrote it, and records the result as events.

tree.py     the files of a storage at rest
entries.py  the timeline, in either layout
audit.py    a table as events of a history
hudi_rs.py  its rows, read by hudi-rs (Rust); __main__.py is the process that does so
"""

from marker_sim.tables.audit import observe_table
from marker_sim.tables.entries import WRITE_KEY, Unreadable
from marker_sim.tables.hudi_rs import read_rows
from marker_sim.tables.tree import LocalTree, S3Tree, Tree

__all__ = ["WRITE_KEY", "LocalTree", "S3Tree", "Tree", "Unreadable", "observe_table", "read_rows"]
