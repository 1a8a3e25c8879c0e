"""The reference write client, on top of any marker store: attempts, finalize, commit, rollback.

attempt.py    the executor's part: marker, then file, then a write stat
client.py     the driver's part: WriteClient
stage.py      a stage of tasks, until one attempt of each has succeeded
backend.py    what a stage and its cluster exchange
records.py    the table's timeline on storage
slices.py     which files of the completed commits hold which rows (pure)
"""
