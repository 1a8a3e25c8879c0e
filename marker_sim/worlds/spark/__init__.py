"""Writes as jobs of Spark applications, under the faults of a plan: the reference's own, and those of a released Hudi.

    plans.py, hudi/steps.py, hudi/choices.py     a Plan, whose faults belong to its writes, drawn from a seed
        │
        ▼
    run.py, hudi/table_run.py                    play it: storage, one driver after another, one write after another
        │                                             │  fault_injector.py: kills and delays, at a storage call or when
        ▼                                             │  an attempt or the driver says where it is
    a driver, with its session of Spark          ◄────┘
        │  driver.py: begin, the tasks, finalize, commit                              │  hudi/job.py: Hudi writes, reads
        ▼                                                                             ▼
    tasks.py on executors: marker, file, stat    standalone.py: a master and two workers, or executors in the driver
        │
        ▼
    outcome.py                                   the History, and what is left behind

application.py     a driver of Hudi's writes from the kit's side, asked by JSON lines
driver.py          a driver of the reference's jobs
fault_injector.py  does the faults of a plan to processes, and counts those that had an effect
plans.py           plans of the reference's jobs, their faults, and how they are drawn
run.py             one run of the reference's jobs: the cluster of worlds/processes with executors of Spark
session.py         a driver from inside: session, settings, the loop in which Hudi's answers the kit
standalone.py      a Spark cluster on 127.0.0.2 and 127.0.0.3
tasks.py           what executors do for a write of the reference
outcome.py         a run that is over, and the data files that it left behind
hudi/              the writes of a released Hudi, with what is known of them from outside alone

A run of the reference's jobs is one of worlds/processes: coordinator, storage, timeline server, phases and header are
the same. Of Hudi nothing is replaced: the kit sees what any observer can see.
"""
