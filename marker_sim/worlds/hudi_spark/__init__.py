"""`--sut hudi-spark:VERSION`: the write path of a released Hudi as a PySpark job, killed at chosen storage effects.

runs.py              one run: storage, table, drivers ─► History; steps.py: its steps
choices.py           which run comes next; forecast.py: what a budget will reach
table.py             the writes of one table: faults, recoveries, audits, rows read back
phases.py            the phases of a write and of a rollback in which a driver can be killed
deciding_faults.py   which faults decide which guarantee
drivers.py           the drivers of a run, one after another
fault_injector.py, storage_faults.py  faults of drivers; faults of executors and of the object store
table_storage.py     where a table is stored: a local directory that is watched, or a bucket of the kit's S3
settings.py          the settings of Hudi and Spark
job.py               the program that runs in the driver

The kit sees only what any observer can see: storage requests, files, the timeline, rows. Nothing of Hudi is replaced.
"""
