"""Writes as jobs of Spark applications, under the faults of a plan: the reference's own, and those of a released Hudi.

    plans.py, hudi/steps.py, hudi/choices.py     a Plan, whose faults belong to its writes, drawn from a seed
        │
        ▼
    run.py, hudi/table_run.py                    play it: storage, one driver after another, one write after another
        │  application.py: JSON lines                 │  fault_injector.py: kills and delays, at a storage call or when
        ▼                                             │  an attempt or the driver says where it is
    session.py in the driver's process           ◄────┘
        │  driver.py: begin, the tasks, finalize, commit, with the timeline server    │  hudi/job.py: Hudi writes, reads
        ▼                                                                             ▼
    tasks.py on executors: marker, file, stat    standalone.py: a master and two workers, or executors in the driver
        │
        ▼
    outcome.py                                   the History, and what is left behind

application.py     the driver of an application from the kit's side
driver.py          a driver of the reference's jobs, and its timeline server
fault_injector.py  does the faults of a plan to processes, and counts those that had an effect
plans.py           plans of the reference's jobs, their faults, and how they are drawn
run.py             one run of the reference's jobs
session.py         a driver from inside: session, settings, the loop that answers the kit
standalone.py      a Spark cluster on 127.0.0.2 and 127.0.0.3
tasks.py           what executors do for a write of the reference
outcome.py         a run that is over, and the data files that it left behind
hudi/              the writes of a released Hudi, with what is known of them from outside alone

Processes of the reference talk to the kit as the children of worlds/processes do, so storage effects pass the same
interceptor; the write client, markers and judges are those of every other world. Of Hudi nothing is replaced: the kit
sees what any observer can see.
"""
