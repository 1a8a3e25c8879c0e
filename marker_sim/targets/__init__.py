"""Systems under test, one module each, and the table of them: what `--sut` accepts.

target.py           the common interface, and the request that a campaign receives
table.py            a row for each
python.py           systems in Python, loaded by `marker_sim.loading`: the reference, mutants, any; their runs are plans
command.py          a program in any language, by its command line; its runs are plans
http.py             any server with the timeline server's HTTP protocol, started by a command; http_plans.py: its plans
hudi.py             Hudi's timeline server
hudi_java.py        Hudi's write path by its Java client; hudi_java_runs.py: its runs; hudi_java_walk.py: which
hudi_spark.py       Hudi's write path on Spark; hudi_spark_runs.py: its runs
server_settings.py  settings of a foreign server: batching, storage, S3 endpoint
run_environment.py  scratch files, storage and limits of a campaign
jvm/                what needs a JVM: jars, Java servers that start quickly, the write client as jobs of Spark
"""
