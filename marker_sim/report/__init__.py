"""The files and tables of a run, made from a Campaign alone.

verdict.py      the content of verdict.json and the exit code
table.py        the terminal's table and failures
notes.py        what was undecided, not reached, left out or failed; two systems on the same plans
words.py        plans and events as sentences
steps.py        the evidence of a violation as steps
page.py         report.html, one file that needs no network
write.py        writes the report's files, each whole or not at all
ci.py           the verdict for CI systems: JUnit XML, SARIF, annotations and a summary on GitHub
columns.py      history.parquet, both ways
directory.py    one writer per report directory; earlier reports are moved aside
kill_matrix.py  the report of `marker-sim mutants`
pictures/       drawings of runs
scripts/        failures as scripts that need no kit, with their templates
templates/      HTML pages from their templates
"""
