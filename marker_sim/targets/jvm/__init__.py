"""Jars, and Java servers that start quickly; the launchers of Hudi's timeline server, and its settings of S3; and
the program that writes tables by Hudi's Java client.

bundles.py     fetches released jars, and reads a bundle that was just built
java_start.py  a Java server that starts in a third of the time
hudi_java_writers.py  which runs several writers of one table have; hudi_java_orders.py: two in every order
reference_spark.py  the write client as jobs of Spark: the target, and its runs
"""
