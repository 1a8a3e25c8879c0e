"""Systems under test that are processes of their own.

http.py             any server that speaks the timeline server's HTTP, started by a command
hudi.py             a released Hudi timeline server; bundles.py fetches its jars
hudi_spark.py       a released Hudi write path on Spark
batching.py         how a foreign server batches
s3_endpoint.py      the storages a foreign server can be given
run_environment.py  scratch files, storage and limits of a campaign
interruption.py     how a campaign ends early

Systems in Python are loaded by `marker_sim.loading`.
"""
