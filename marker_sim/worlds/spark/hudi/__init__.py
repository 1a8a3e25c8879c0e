"""`--sut hudi-spark:VERSION`: a released Hudi writes a table as PySpark jobs, killed at chosen storage effects.

choices.py        which run comes next; what a budget will reach, and what was met in the end
steps.py          what a step of a run does, where a driver can be killed, and which guarantees each step decides
settings.py       the settings of Hudi and Spark
table_run.py      one run: storage, table, drivers ─► History
table.py          the writes of one table: faults, recoveries, audits, rows read back
future.py         what becomes of the table afterwards, step by step
writers.py        the same by several writers at once, one of which goes on at a time
table_storage.py  where a table is stored: a local directory behind the door, or a bucket of the kit's S3
job.py            the program that runs in the driver
java_driver.py    drivers that write by Hudi's Java client instead, as processes or as lives of one JVM

The kit sees only storage requests, files, the timeline and rows. Drivers, clusters and the injector are those of the
reference's jobs (worlds/spark).
"""
