"""Stand-alone scripts: a failure that can be run without the kit, by Python alone or by Java.

server_script.py  a failure of a server as a Python script (server_script.py.j2, door.j2)
server_steps.py   the operations and faults of a plan as lines of that script
table_script.py   a failure of a table as a Python script that needs PySpark too (table_script.py.j2, door.j2), or as
                  a Java program, for a table that Hudi's Java client writes (table_script.java.j2, table.java.j2)
writers_script.py a failure of several writers of one table as a Python script whose writers are JVMs
                  (writers_script.py.j2, writers_script.java.j2, table.java.j2), and whose rows a reader loses
issue.py          the text for an issue tracker, of any failure (issue.toml, issue.md.j2)
"""
