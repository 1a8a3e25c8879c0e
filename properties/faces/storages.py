"""Names of `marker_sim.storages` that tests use."""

from marker_sim.storages.local import LOCK_FILE, LocalStorage
from marker_sim.storages.locks import HostLocks
from marker_sim.storages.s3 import S3Storage, StoreAnswered
