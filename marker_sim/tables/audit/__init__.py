"""`marker-sim audit`: what defects of markers, commits and rollbacks left in an existing Hudi table. It only reads.

The timeline is read, then the files, then the timeline once more. The second timeline decides: it has the instant of
every stored file, or a rollback that names this instant, and the plan of every deletion before the listing. Files
committed only after the first reading are not looked for, because the listing may have come before.

at_rest.py        the table as it is judged: what its timeline says, what is stored, and when it is
data_files.py     rules about data files
instant_rules.py  rules about entries that cannot be read, instants that are not completed, and marker directories
findings.py       findings, kinds and levels, the report
advice.py         the next step of a finding where the usual one would destroy what another finding needs
audit.py          the audit of one table and its metadata table
spark.py          the same with data files listed by Spark's executors
output.py         text, JSON, Parquet, HTML
"""
