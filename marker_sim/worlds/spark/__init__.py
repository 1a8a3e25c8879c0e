"""The write path on Spark: a DataFrame becomes data files with markers, and what befalls the job comes from a plan.

    kit process                             the driver's session              executors, on 127.0.0.2 and 127.0.0.3
    jobs.py     plays the plan  ──────────► driver.py   begin, the tasks,     tasks.py   marker, Parquet file, stat
    nemesis.py  hurts who is due                        finalize, commit                 with Spark's own attempt
    plans.py    what is to happen           server.py   the timeline server,
                                                        started by the driver

Every process talks to the kit as the children of real/jobs do, so that storage effects pass one gate in one order; the
reference's write client, markers and judges are the same as in every other world.
"""
