"""The reference's write path on Spark: a DataFrame becomes data files with markers, under the faults of a plan.

    kit process                                 the driver's session             executors, on 127.0.0.2 and 127.0.0.3
    run.py             plays the plan  ───────► driver.py  begin, the tasks,     tasks.py  marker, Parquet file, stat,
    fault_injector.py  injects the faults                  finalize, commit                with Spark's own attempt ids
    plans.py           what a plan contains     server.py  the timeline server,
    random_plans.py    plans from seeds                    started by the driver
    counts.py          counts what happened

application.py  starts and ends a driver's session
standalone.py   a Spark master and two workers

Every process talks to the kit as the children of worlds/processes do, so storage effects pass the same interceptor;
the write client, markers and judges are those of every other world.
"""
