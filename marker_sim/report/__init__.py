"""What a run leaves for people and programs, made from a Campaign and nothing else.

verdict.py   the content of verdict.json (design, section 4.2), and the exit code it means
write.py     the report directory: every file in place or not at all
columns.py   history.parquet, both ways
words.py     plans and events as sentences
table.py     the terminal's table and failures
page.py      report.html, one file that needs no network
"""
