"""Judges histories and facts that do not fit into memory as events.

set_judging.py  a history or facts, judged by the set rules
parts.py        a history judged table by table; tables_of_events.py: which table an event belongs to
recorded.py     the facts of a recorded history, from its columns; data_files.py: those about data files
fact_files.py   facts of other programs, as files of rows
arrow_engine.py the set rules over interned columns; spark_engine.py: by Spark
"""
