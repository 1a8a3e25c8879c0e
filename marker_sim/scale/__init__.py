"""Judges histories and facts that do not fit into memory as events.

set_judging.py  a history, or facts that others recorded as files of rows, judged by the set rules
parts.py        a history judged table by table
recorded.py     the facts of a recorded history, from its columns; data_files.py: those about data files
engines.py      the set rules over interned columns in memory, and by Spark
"""
