"""What the kit needs of the machine that it runs on.

files.py          files shared with other processes, and the cache of downloads
requirements.py   packages of Python, and which extra brings them; Java and Spark as they are installed here
supervisor.py     starts and ends processes
worker_pool.py    a pool of workers
time_limit.py     ends a command that hangs
spark_session.py  the application behind every `--spark-master`
"""
