"""One of each: mechanisms that stood in the package more than once, and may not do so again."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

from properties.package_tree import MODULES, PACKAGE, nodes_of, text_of

# Functions of a complexity above 12 (ruff C901), by file: a list that only becomes shorter.
COMPLEX = {
    "history/index/event_reader.py": 2,
    "judges/store/durability.py": 1,
    "plan.py": 2,
    "worlds/disk.py": 1,
    "worlds/s3_front/requests.py": 1,
    "worlds/simulated/storage.py": 1,
}
# Tests import a room's names from properties/faces, so that a room can be changed without its tests. Imports from the
# modules of rooms that are left: of modules that a test changes, of names that two modules of a room have, and in three
# files that have 400 lines with them.
DIRECT_IMPORTS_MAX = 63
ROOM = re.compile(r"marker_sim\.\w+\.\w")
# `verify` of a Python class: the modules of the package that it imports, and those that it never runs.
IMPORTED_MAX = 157
NEVER_RUN = tuple(
    f"marker_sim.{name}"
    for name in (
        "cli.replay",
        "serve",
        "targets.http",
        "targets.hudi",
        "targets.jvm",
        "worlds.door",
        "worlds.http",
        "worlds.processes",
        "worlds.s3_front",
        "worlds.spark",
    )
)
VERIFY = """
import sys
from marker_sim.cli import main
words = "verify --sut properties.correct.nested_json:Markers --runs 4 --seed 1 --jobs 1 --report"
main([*words.split(), sys.argv[1]])
print(*(name for name in sys.modules if name.split(".")[0] == "marker_sim"), sep="\\n", file=sys.stderr)
"""


@cache
def classes() -> tuple[ast.ClassDef, ...]:
    """All of the package; read by the first test that asks, for each worker collects these tests and one runs them."""
    return tuple(node for path in MODULES for node in nodes_of(path) if isinstance(node, ast.ClassDef))


def methods(node: ast.ClassDef) -> set[str]:
    return {each.name for each in node.body if isinstance(each, ast.FunctionDef)}


def bases(node: ast.ClassDef) -> set[str]:
    return {base.id for base in node.bases if isinstance(base, ast.Name)}


def test_scripts_are_in_python_and_java_and_know_no_number_of_a_system_call() -> None:
    scripts = PACKAGE / "report" / "scripts"
    templates = sorted(path.name for path in scripts.iterdir() if path.suffix == ".j2")
    of_writers = ["writers_script.java.j2", "writers_script.py.j2"]
    of_tables = ["table.java.j2", "table_script.java.j2", "table_script.py.j2"]
    assert templates == ["door.j2", "issue.md.j2", "server_script.py.j2", *of_tables, *of_writers]
    others = {path.name for path in scripts.iterdir() if path.is_file() and path.suffix not in (".j2", ".py")}
    assert others == {"issue.toml"}
    architecture = re.compile("0xC000003E", re.IGNORECASE)  # Of x86-64, in the data of a filter.
    found = [
        path for path in (*PACKAGE.rglob("*.py"), *scripts.glob("*.j2")) if architecture.search(path.read_text("utf-8"))
    ]
    assert found == [PACKAGE / "worlds" / "door" / "table.py"]


def test_one_class_enumerates_numbered_calls() -> None:
    walks = {node.name: bases(node) for node in classes() if methods(node) >= {"next", "took"}}
    assert walks == {"Walk": {"CallWalk"}, "TableWalk": {"CallWalk"}}


def test_one_pool_performs_tasks_in_parallel() -> None:
    assert [node.name for node in classes() if methods(node) >= {"give", "answers"}] == ["TaskPool"]


def test_one_executor_plays_campaigns_in_real_time() -> None:
    calling = {path.relative_to(PACKAGE).as_posix() for path in MODULES if ".real_runs(" in text_of(path)}
    # A campaign, of `verify` or of a night; one stored plan again; the other one of two systems on the same plans.
    assert calling == {"campaign/played_runs.py", "campaign/replay.py", "campaign/comparison.py"}


def test_one_function_takes_the_fields_of_an_event() -> None:
    assert [node.name for node in classes() if "record" in methods(node)] == ["Events"]
    receivers = {node.name for node in classes() if "Events" in bases(node)}
    assert receivers == {"Scheduler", "Recorder", "CoordinatorClient", "Host"}


def test_one_cluster_plays_the_writes_of_the_reference_in_every_world() -> None:
    clusters = {node.name: bases(node) for node in classes() if bases(node) & {"ClusterRun", "ProcessCluster"}}
    assert clusters == {"Cluster": {"ClusterRun"}, "ProcessCluster": {"ClusterRun"}, "SparkCluster": {"ProcessCluster"}}
    assert [path.name for path in MODULES if " Coordinator(" in text_of(path)] == ["fork_server.py"]


def test_one_class_says_what_the_entries_of_a_timeline_mean() -> None:
    """Audits read it as it is; a judge adds what a history has, and says nothing else of entries."""
    found = {node.name: node for node in classes() if "saying" in methods(node) or "Instants" in bases(node)}
    assert {name: bases(node) for name, node in found.items()} == {"Instants": set(), "Audit": {"Instants"}}
    assert methods(found["Audit"]) & methods(found["Instants"]) == {"__init__"}


def test_tests_import_the_names_of_rooms_from_faces() -> None:
    tests = [path for root in ("properties", "scenarios") for path in (PACKAGE.parent / root).rglob("test_*.py")]
    direct = [
        f"{path.name}: {node.module}"
        for path in tests
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ImportFrom) and node.module and ROOM.match(node.module)
    ]
    assert len(direct) <= DIRECT_IMPORTS_MAX, direct


def test_a_failure_is_of_a_run_or_stored_in_one_form() -> None:
    linked = {node.name: bases(node) for node in classes() if "rank" in methods(node) or "FailureRecord" in bases(node)}
    assert linked == {"Failure": set(), "FailureRecord": set()}


def test_the_time_limit_needs_no_process() -> None:
    text = (PACKAGE / "surroundings" / "time_limit.py").read_text(encoding="utf-8")
    assert "subprocess" not in text and "fork" not in text


def test_code_is_formatted_and_says_where_it_is_complex() -> None:
    assert [path for path in MODULES if "fmt: skip" in text_of(path)] == []
    assert [path.relative_to(PACKAGE).as_posix() for path in MODULES if "fmt: off" in text_of(path)] == ["cli/app.py"]
    assert text_of(PACKAGE / "cli" / "app.py").count("fmt: off") == 1
    counts = {path.relative_to(PACKAGE).as_posix(): text_of(path).count("noqa: C901") for path in MODULES}
    assert {name: count for name, count in counts.items() if count} == COMPLEX


def test_one_function_reads_the_error_of_a_call() -> None:
    read = [path.name for path in MODULES if re.search(r"events\[[^\]]*done\]\.error", text_of(path))]
    assert read == ["event_reader.py"]


def test_verify_imports_what_it_runs(tmp_path: Path) -> None:
    words = (sys.executable, "-c", VERIFY, str(tmp_path / "report"))
    ended = subprocess.run(words, check=True, capture_output=True, text=True, cwd=PACKAGE.parent)
    imported = [line for line in ended.stderr.splitlines() if line.startswith("marker_sim")]
    assert "marker_sim.report.page" in imported and "4 runs" in ended.stdout
    assert [name for name in imported if name.startswith(NEVER_RUN)] == []
    assert len(imported) <= IMPORTED_MAX
