"""`marker-sim audit`: what defects of markers, commits and rollbacks left in an existing Hudi table. It only reads.

sources.py     the files of a table, in a directory or a bucket: concurrent listings, whole and partial reads
properties.py  hoodie.properties
names.py       names of data files, of every release
archive.py     archived entries, of the old log format and of the LSM tree
timeline.py    all entries, active and archived
instants.py    what the entries say together: completed, pending, rolled back, named, deleted
snapshot.py    one table as it is read: timeline, files, timeline once more
data_files.py  rules about data files
markers.py     rules about marker directories
entries.py     rules about entries of the timeline
findings.py    findings, kinds and levels, the report
audit.py       all of it for one table and its metadata table
spark.py       the same with data files listed and judged by Spark's executors
output.py      text, JSON, Parquet, HTML
"""
