"""The Storage seam over what is really there: a directory of this host, an S3 bucket.

local.py    files below a directory; nothing outside is touched
locks.py    locks of the host by name, for storages that cannot replace only if unchanged
s3.py       objects of a bucket through boto3, without hidden retries
refused.py  the error for a path that a storage can never hold
"""
