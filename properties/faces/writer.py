"""Names of `marker_sim.writer` that tests use."""

from marker_sim.writer.attempt import assigned, work_of, write_file
from marker_sim.writer.backend import Backend
from marker_sim.writer.client import WriteClient
from marker_sim.writer.records import Conflict
from marker_sim.writer.slices import LINES, RowFormat, table_rows
from marker_sim.writer.stage import Stage
