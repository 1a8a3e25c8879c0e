"""Reads a Hudi table from outside, whoever wrote it, and records what it finds as events.

tree.py     files of a storage at rest        entries.py  the timeline, of either layout
audit.py    a table as events of a history    hudi_rs.py  its rows, by a reader in another language
"""

from marker_sim.tables.audit import observe_table
from marker_sim.tables.entries import WRITE_KEY, Unreadable
from marker_sim.tables.hudi_rs import read_rows
from marker_sim.tables.tree import LocalTree, S3Tree, Tree

__all__ = ["WRITE_KEY", "LocalTree", "S3Tree", "Tree", "Unreadable", "observe_table", "read_rows"]
