"""docs/findings.md by one command: stored failures of released Hudi, their scripts and what these showed.

stored/             a failure for each story of a timeline server, as JSON; its name is the anchor of the story
stored_finding.py   reads and writes them
taking.py           takes one from the report of a `verify`
document.py         the parts of docs/findings.md and docs/tracker-example.md that follow from them
"""
