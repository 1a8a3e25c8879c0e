"""The reference write client, on top of any marker store: attempts, finalize, commit, rollback.

attempt.py    an executor's part: marker, then file, then a write stat
client.py     a driver's part: WriteClient
records.py    the table's timeline on storage
slices.py     which files of the completed commits hold which rows (pure)
stage.py      the driver's part of a stage: its tasks, until one attempt of each has succeeded
backend.py    what a stage and its cluster tell each other
"""
