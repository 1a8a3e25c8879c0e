"""`--sut hudi-spark:VERSION`: the write path of a released Hudi as a PySpark job, killed at chosen storage effects.

    campaign.py   rounds within a budget, judged and counted; choices.py: which round comes next
    rounds.py     a round: storage, table, drivers ─► History
    table.py      the writes of one table, aimed faults, recoveries, audits, rows read back
    phases.py     the places of a write and of a rollback at which a fault is aimed
    lives.py      the drivers of a round, one after another
    places.py     where a table lies: a local directory that is watched, or a bucket of the kit's S3
    settings.py   what Hudi and Spark are told
    job.py        the program that runs in the driver

The kit sees what anybody sees: requests that storage got, files, the timeline, rows. Nothing of Hudi is replaced.
"""
