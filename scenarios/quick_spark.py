"""Settings of Spark for applications that live for seconds and have little data: what runs once is not compiled first.

They are a user's `spark-defaults.conf`, which every application of the kit reads where SPARK_CONF_DIR names its folder.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from marker_sim.worlds.spark.session import JVM

SETTINGS = {
    "spark.driver.extraJavaOptions": JVM,
    "spark.executor.extraJavaOptions": JVM,
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # Several, and not put together again because they are small.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "4",
}


def use_quick_settings(folder: Path, patch: pytest.MonkeyPatch) -> None:
    """Let applications that are started until the patch is undone have these settings."""
    lines = "".join(f"{name} {value}\n" for name, value in SETTINGS.items())
    folder.mkdir()
    (folder / "spark-defaults.conf").write_text(lines, encoding="utf-8")
    patch.setenv("SPARK_CONF_DIR", str(folder))
