"""`marker-sim audit`: what defects of markers, commits and rollbacks left in an existing Hudi table. It only reads.

The timeline is read, then the files, then the timeline once more. The second timeline decides: every stored file was
begun by an instant that it has, or by one that a rollback in it names, and every deletion before the listing has its
plan in it. What was committed only after the first timeline is not looked for among the files, which may have been
listed before.

claims.py      what commits say of files, and what else an audit knows from the entries
data_files.py  rules about data files
markers.py     rules about marker directories
pending.py     rules about entries that cannot be read, and about instants that are not completed
findings.py    findings, kinds and levels, the report
audit.py       all of it for one table and its metadata table
spark.py       the same with data files listed and judged by Spark's executors
output.py      text, JSON, Parquet, HTML
"""
