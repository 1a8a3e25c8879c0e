"""The files and tables of a run, made from a Campaign alone.

verdict.py      the content of verdict.json and the exit code
table.py        the terminal's table and failures
comparison.py   two systems on the same plans
words.py        plans and events as sentences
page.py         report.html, one file that needs no network (page.html.j2)
templates.py    HTML pages from their templates, which share layout.html.j2, macros.html.j2 and page.css
charts.py       small bar charts and lines over time
load.py         throughput and latency of runs in real time
heat_map.py     faults by phase as a map
picture.py      the picture of a failure: lanes, bars, faults, ticks (drawn by picture.js); stored.py: what storage held
trace.py        trace.json, a history for Perfetto
junit.py        the verdict as JUnit XML
notes.py        what was undecided, not reached, left out or in trouble
columns.py      history.parquet, both ways
script.py       a failure as a shell script that shows it without the kit (script.sh.j2, script.awk)
script_steps.py the operations and faults of a plan as lines of that script
table_script.py a failure of a table as a Python script that needs PySpark alone (table_script.py.j2)
issue.py        a failure as a text for an issue tracker
write.py        writes the report's files, each whole or not at all
directory.py    one writer per report directory; earlier reports are moved aside
kill_matrix.py  the report of `marker-sim mutants`
"""
