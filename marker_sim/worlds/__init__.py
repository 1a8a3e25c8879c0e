"""Where a plan or a round runs, so that a history comes of it.

simulated/      one process, virtual time
processes/      the same plans, every actor a process that can be killed
http/           somebody's timeline server, started by a command, in rounds of load and faults
spark/          the reference's write path as jobs of a Spark application
hudi_spark/     the write path of a released Hudi as PySpark jobs
s3_front/       the kit's S3, through which storage requests are seen and failed
proxies/        toxiproxy between whoever asks and whoever answers
interceptor.py  every effect passes here before anybody sees it; file_watch.py and file_permissions.py where it cannot
recorder.py     events of many threads in one order
"""
