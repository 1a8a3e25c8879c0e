"""An index of one finished history, from which judges and statistics read. Pure functions and values.

event_reader.py   one pass over the events, sorted into what the others need
calls.py          records: calls, server lives, faults, directories
presence.py       what was stored when, by name
write_path.py     writes, data files and timeline entries
tables.py         tables of a black-box write path; table_audit.py one look at one; log_files.py whose a log file is
history_index.py  HistoryIndex: all of it behind one value
"""
