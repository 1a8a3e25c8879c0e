"""Stand-alone scripts: a failure that can be run without the kit.

shell_script.py  a failure of a server as a shell script (script.sh.j2, script.awk)
shell_steps.py   the operations and faults of a plan as lines of that script
table_script.py  a failure of a table as a Python script that needs PySpark alone (table_script.py.j2), or as a Java
                 program, for a table that Hudi's Java client writes (table_script.java.j2)
"""
