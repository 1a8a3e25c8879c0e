"""Real storage behind the Storage seam: a local directory or an S3 bucket.

local.py    files below a directory; nothing outside it is touched
locks.py    host locks by name, for storages without conditional replacement
s3.py       objects of a bucket through botocore, without hidden retries
"""
