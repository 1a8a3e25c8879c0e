"""An index of one finished history, from which judges and statistics read. Pure functions and values.

event_reader.py   one pass over the events that sorts them for the other modules
calls.py          records: calls, server lives, faults, directories, the lives of names
presence.py       which names were stored when
write_path.py     writes, data files and timeline entries
tables.py         tables of a black-box write path, whose log file is whose; table_audit.py: one audit of a table
history_index.py  HistoryIndex, all of it in one value
"""
