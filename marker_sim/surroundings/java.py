"""Java and Spark as they are installed here. Looking imports neither PySpark nor a pool of workers."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from pathlib import Path

from marker_sim.errors import HarnessError
from marker_sim.surroundings.requirements import need

JAVA_MIN = 17
GET_JAVA = f"install a JDK {JAVA_MIN} or later (Debian: openjdk-{JAVA_MIN}-jdk-headless) and put java on PATH"
JAVA_TIMEOUT_S = 30.0


def spark_home() -> Path:
    """The directory of PySpark; HarnessError says how to get it."""
    need("Hudi", "pyspark")
    spec = importlib.util.find_spec("pyspark")
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).parent


def find_java(who: str = "Hudi") -> str:
    """The path of a Java that is new enough: JAVA_HOME's, else the one on PATH; HarnessError says how to get it.

    who: needs it.
    """
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if java is None or not os.access(java, os.X_OK):
        where = f"JAVA_HOME is {home!r} and has no bin/java" if home else "there is no java on PATH"
        raise HarnessError(f"{who} needs Java and {where}; {GET_JAVA}")
    try:
        said = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=JAVA_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise HarnessError(f"{java} -version did not answer ({error}); {GET_JAVA}") from error
    number = re.search(r'version "(?:1\.)?(\d+)', said.stderr + said.stdout)
    if number is None or int(number[1]) < JAVA_MIN:
        lines = (said.stderr + said.stdout).strip().splitlines()
        shown = [line for line in lines if "Picked up " not in line][:1]
        raise HarnessError(f"{java} is {' '.join(shown) or 'no Java'}, which is too old; {GET_JAVA}")
    return java
