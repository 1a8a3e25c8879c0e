"""What the parts of the kit that are not in a plain install need of Python packages, and which extra brings them.

Looking is cheap and imports nothing, so whoever starts a process looks first: the process itself could only fail.
"""

from __future__ import annotations

from importlib.util import find_spec

_SERVE = ("httptools", "uvicorn")
_S3 = ("boto3", "moto")
_FOREIGN = ("inotify_simple", "psutil", "urllib3")
# By part: the modules that it imports. Real processes are the kit's own driver, executors and server.
NEEDS: dict[str, tuple[str, ...]] = {
    "http on local": _FOREIGN,
    "http on s3": (*_FOREIGN, *_S3),
    "hudi on local": (*_FOREIGN, "pyspark"),
    "hudi on s3": (*_FOREIGN, "pyspark", *_S3),
    "hudi-spark on local": (*_FOREIGN, "fastavro", "hudi", "pyspark"),
    "hudi-spark on s3": (*_FOREIGN, "fastavro", "hudi", "pyspark", *_S3),
    "real processes on local": (*_SERVE, "urllib3"),
    "real processes on s3": (*_SERVE, "urllib3", *_S3),
    "wires": ("toxiproxy",),
    "spark": ("pyspark", "psutil", "urllib3", *_SERVE, *_S3),
}
# The extra of each module, and its package where that is called otherwise.
EXTRAS = {
    "httptools": "serve",
    "uvicorn": "serve",
    "boto3": "s3",
    "moto": "s3",
    "inotify_simple": "foreign",
    "psutil": "foreign",
    "toxiproxy": "foreign",
    "urllib3": "foreign",
    "pyspark": "hudi",
    "fastavro": "spark",
    "hudi": "spark",
}
_PACKAGES = {"inotify_simple": "inotify-simple", "toxiproxy": "toxiproxy-python"}


def lacking(part: str) -> str:
    """What a part of the kit lacks here and how to get it, as the end of "it needs ..."; "" when all is here."""
    missing = [module for module in NEEDS[part] if find_spec(module) is None]
    if not missing:
        return ""
    names = [_PACKAGES.get(module, module) for module in missing]
    extras = {EXTRAS[module] for module in missing}
    if "hudi" in extras:
        extras.discard("foreign")  # Each brings the one before it.
    chosen = "spark" if "spark" in extras or part == "spark" else ",".join(sorted(extras))
    packages = f"package {names[0]}, which is" if len(names) == 1 else f"packages {', '.join(names)}, which are"
    return f"the Python {packages} not installed; pip install '.[{chosen}]' in a clone of marker-sim"
