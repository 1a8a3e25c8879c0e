"""Names of `marker_sim.tables` that tests use."""

from marker_sim.tables.archive import is_archive
from marker_sim.tables.audit.audit import audit_table
from marker_sim.tables.audit.findings import KINDS, TableFinding, TableReport
from marker_sim.tables.audit.output import json_text
from marker_sim.tables.audit.spark import listing_on_spark
from marker_sim.tables.entries import Unreadable, by_word, decode, recorded_facts
from marker_sim.tables.hudi_rs import read_rows
from marker_sim.tables.parts import ObservedPart, observed
from marker_sim.tables.sources import (
    BucketSource,
    DirectorySource,
    Files,
    ObjectFiles,
    StoredFile,
    TableSource,
    open_source,
)
