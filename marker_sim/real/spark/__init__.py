"""Processes of Spark on loopback: a standalone cluster whose workers are hosts of their own, and drivers that die.

standalone.py   a master and two workers, on 127.0.0.1, 127.0.0.2 and 127.0.0.3
application.py  one driver: a Python program with its JVM, told by JSON lines what to do
"""
