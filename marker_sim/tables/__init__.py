"""A Hudi table at rest, whichever program wrote it: it is read here, for audits, for histories and for their judges.

sources.py          files: below a directory, in a bucket, or objects of this process
parts.py            the part of a table that a file is; hoodie.properties, marker directories, a table as events
entries.py          what entries of the timeline say, as facts
archive.py          archived entries, of the old log format and of the LSM tree
timeline_reader.py  all entries of a timeline, active and archived
instants.py         the state of instants by their entries: committed, pending, rolled back
hudi_rs.py          its rows, read by hudi-rs (Rust)
audit/              `marker-sim audit`, on top of all that

`marker_sim.timeline` and `marker_sim.names` own the names of files.
"""
