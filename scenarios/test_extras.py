"""Each extra alone in an environment of its own, as users install it, where the commands of README.md are played.

What README promises of the extra works. Every other command that needs one works as well, or says in one sentence
which, and README promises it. `PLAYED` has each command of README with a small input or budget; one without an entry
fails a test. Tests marked `extras` install from a registry; where uv is on PATH, by uv.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from properties import tools
from properties.audit.real_tables import unpack
from properties.faces.storages import S3Storage
from properties.faces.targets import SERVICE
from properties.real.served import Served

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
EXTRAS: dict[str, list[str]] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
    "optional-dependencies"
]
OF_DEVELOPERS = {"docs", "test", "dev"}
# What README promises something of, and each other extra.
ENVIRONMENTS = ("", "serve,s3", "foreign,s3", "spark", "audit", "serve", "s3", "foreign", "hudi")
INSTALL_S = COMMAND_S = 600  # For hangs alone.
JUDGED = (0, 1, 3)
TABLE, BUCKET = "1.0.2-cow-archived-clustered", "lake"
NO_JAVA = "/nowhere"
AS_WRITTEN = "{readme}"
NAMED = re.compile(r"pip install '\.\[([a-z0-9,]+)\]' in a clone")


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """A command of README as it is played. words: with {s3}, an endpoint, {here}, a folder, and {readme}, as it is.

    extras: what README promises that it needs. makes: a file, or what it prints.
    looks: needs no extra, and uses what is installed; it is played in every environment, others of this kind in one.
    elsewhere: the test that plays the same, or with less; here it has to get as far as to ask for Java, and finds none.
    """

    words: str = AS_WRITTEN
    extras: str = ""
    makes: str = ""
    looks: bool = False
    elsewhere: str = ""


FIRST = "marker-sim verify --sut mutant:exists-from-memory --mode timeline --storage s3 --runs 120 --seed 2"
HTTP = "marker-sim verify --sut http --start './server --port {port} --dir {storage}' --storage local"
ON_SPARK = "marker-sim verify --sut hudi-spark:1.0.2 --storage local --budget 15m"
OF_JOBS = "marker-sim verify --sut reference-spark --budget 10m"
BY_JAVA = "marker-sim verify --sut hudi-java:1.2.0 --mode direct --budget 15m"
RACES = "marker-sim verify --sut hudi-java:1.2.0 --writers 2 --budget 5m"
BUILT = "marker-sim verify --sut hudi:./hudi-spark3.5-bundle_2.12-1.3.0-SNAPSHOT.jar"
TWO = "marker-sim verify --sut hudi:1.2.0 --against hudi:1.1.1"
ON_A_CLUSTER = "marker-sim chaos --budget 8h --spark-master spark://HOST:7077"
PLAYED = {  # The first one makes the report of others.
    FIRST: Played(makes="At step 1 of the server, a second server starts on the", looks=True),
    "import marker_sim": Played(words="python said.py"),
    "marker-sim verify --sut package.module:factory": Played(
        words="marker-sim verify --sut markers_of_mine:Markers --runs 10"
    ),
    "pytest --marker-sut package.module:factory": Played(
        words="python -m pytest --marker-sut markers_of_mine:Markers -k 'G4-exact-set and direct-s3'"
    ),
    "marker_sim.verify(MyClass)": Played(
        words="python -c 'import marker_sim, markers_of_mine as my; print(marker_sim.verify(my.Markers, runs=10))'"
    ),
    HTTP: Played(words="{readme} --budget 1s", extras="foreign,s3", makes=": http, "),
    "--profile http-power-loss": Played(
        words=f"{HTTP} {AS_WRITTEN} --budget 1s", extras="foreign,s3", makes=": http, "
    ),
    "marker-sim verify --sut command --start './program'": Played(
        words="{readme} --runs 5", makes="command:./program, 5 runs in"
    ),
    "marker-sim verify --sut hudi:1.0.2 --storage s3 --budget 60s": Played(
        words=f"marker-sim verify --sut hudi:{tools.HUDI} --storage s3 --budget 1s",
        extras="spark",
        makes=f": hudi:{tools.HUDI}, ",
    ),
    ON_SPARK: Played(extras="spark", elsewhere="scenarios/test_hudi_spark.py"),
    OF_JOBS: Played(extras="spark", elsewhere="scenarios/test_spark.py"),
    BY_JAVA: Played(extras="spark", elsewhere="scenarios/test_hudi_java.py"),
    RACES: Played(extras="spark", elsewhere="scenarios/test_hudi_writers.py"),
    BUILT: Played(extras="spark", elsewhere="scenarios/test_hudi_built.py"),
    "--expect hudi-1.0.2-s3": Played(words="marker-sim verify {readme} --runs 10"),
    "--profile FILE": Played(words="marker-sim verify --profile mine.toml --runs 10"),
    TWO: Played(extras="spark", elsewhere="scenarios/test_against.py"),
    "marker-sim replay marker-sim-report": Played(makes="STILL VIOLATED"),
    "marker-sim replay marker-sim-report/plan.json curve.html --curve": Played(makes="curve.html"),
    "marker-sim shrink marker-sim-report --budget 5m": Played(words="marker-sim shrink marker-sim-report --budget 2s"),
    "marker-sim replay marker-sim-report/plan.json --script show.py": Played(
        words="marker-sim replay glued.json --script show.py", makes="show.py"
    ),
    "--markdown issue.md": Played(words="marker-sim replay glued.json {readme}", makes="issue.md"),
    "marker-sim judge marker-sim-report": Played(),
    "marker-sim audit /data/table": Played(words="marker-sim audit table", extras="audit", makes="no damage found"),
    "s3a://lake/table": Played(
        words="marker-sim audit {readme} --s3-endpoint {s3}", extras="audit", makes="no damage found"
    ),
    "marker-sim chaos --budget 8h": Played(words="marker-sim chaos --budget 1s", makes="chaos", looks=True),
    ON_A_CLUSTER: Played(extras="spark", elsewhere="scenarios/test_spark_campaign.py"),
    "marker-sim verify --junit verdict.xml": Played(words="{readme} --runs 10", makes="verdict.xml"),
    "--sarif verdict.sarif": Played(words="marker-sim verify {readme} --runs 10", makes="verdict.sarif"),
    "--github": Played(words="marker-sim verify {readme} --runs 10"),
    "marker-sim mutants": Played(words="{readme} --only ack-before-flush --runs 20 --seeds 1 --jobs 1"),
    "marker-sim serve --base /data/tables": Played(words="marker-sim serve --base {here}", extras="serve,s3"),
    "--base s3a://lake": Played(words="marker-sim serve {readme} --s3-endpoint {s3}", extras="serve,s3"),
    "--fsync": Played(words="marker-sim serve --base {here} {readme}", extras="serve,s3"),
    "marker-sim doctor --install": Played(words="marker-sim doctor", makes="can run here", looks=True),
}
# Of the text below the table; its other options are played with the commands above.
BELOW = ("--fsync", "--profile http-power-loss")


def commands_of_readme() -> set[str]:
    """The commands of the table, what it says to add to them or to write in their place, and what is around it."""
    table = README.partition("| I want to … |")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| [^|]+ \| ([^|]+) \|", table, re.MULTILINE)
    spans = {span for row in rows for span in re.findall(r"`([^`]+)`", re.sub(r"\([^()]* needs [^()]*\)", "", row))}
    first = {line.removeprefix(".venv/bin/") for line in README.splitlines() if line.startswith(".venv/bin/")}
    blocks = {block.partition("\n")[0] for block in re.findall(r"```python\n(.*?)```", README, re.DOTALL)}
    return spans | first | blocks | {each for each in BELOW if f"`{each}`" in README}


def brought(extras: str) -> frozenset[str]:
    """The packages of extras, with their bounds, beside those that come without any."""
    found = set[str]()
    for extra in filter(None, extras.split(",")):
        for each in EXTRAS[extra]:
            own = re.fullmatch(r"marker-sim\[(.+)\]", each)
            found |= brought(own[1]) if own else {each}
    return frozenset(found)


def test_every_command_of_readme_is_played_here_or_by_another_test() -> None:
    assert commands_of_readme() == PLAYED.keys()
    assert all((ROOT / played.elsewhere).exists() for played in PLAYED.values())


def test_there_is_an_environment_for_every_extra_and_for_what_readme_promises() -> None:
    promised = set(re.findall(r"`(?:pip install )?'\.\[([a-z0-9,]+)\]'`", README)) - {"test"}
    assert {played.extras for played in PLAYED.values()} == {"", *promised}
    assert {*ENVIRONMENTS} == {"", *promised, *EXTRAS} - OF_DEVELOPERS


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """An environment, a folder with all that commands name, and what is set while they run."""

    folder: Path
    settings: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The end of a command."""

    code: int
    out: str
    err: str


def run(words: list[str], folder: Path, settings: dict[str, str]) -> Answer:
    done = subprocess.run(
        words, cwd=folder, env=settings, capture_output=True, text=True, check=False, timeout=COMMAND_S
    )
    return Answer(code=done.returncode, out=done.stdout, err=done.stderr)


def serve(words: list[str], folder: Path, settings: dict[str, str]) -> Answer:
    """Start a server, and when it listens create a marker and end it."""
    base = words[words.index("--base") + 1]
    process = subprocess.Popen(
        [*words, "--port", "0"], cwd=folder, env=settings, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        if line.startswith("listening on"):
            served = Served(process=process, port=int(line.rpartition(":")[2]))
            created = served.create(f"{base}/t/.hoodie/.temp/001", f"{folder.parent.name}.parquet.marker.CREATE")
            assert created is True
            process.terminate()
        out, err = process.communicate(timeout=COMMAND_S)
    finally:
        process.kill()
    return Answer(code=process.returncode, out=line + out, err=err)


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    """An object store."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        yield f"http://127.0.0.1:{server.get_host_and_port()[1]}"
    finally:
        server.stop()


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory, endpoint: str) -> Path:
    """A folder with all that the commands name, and the table in the bucket as well."""
    folder = tmp_path_factory.mktemp("inputs")
    guide = (ROOT / "docs" / "third-party.md").read_text(encoding="utf-8")
    for name, text in re.findall(r"```python\n# (\S+)\n(.*?)```", guide, re.DOTALL):
        (folder / name).write_text(text, encoding="utf-8")
    code = ROOT / "docs" / "tutorial" / "code"
    for name in ("forgetful.py", "glued.json", "http_markers.py", "program.py", "rollback.py"):
        shutil.copy(code / name, folder)
    for name, words in (("server", 'forgetful.py "$2" "$4"'), ("program", "rollback.py")):
        (folder / name).write_text(f"#!/bin/sh\nexec {shlex.quote(sys.executable)} -S {words}\n", encoding="utf-8")
        (folder / name).chmod(0o755)
    (said,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    (folder / "said.py").write_text(f"{said}print(verdict)\n", encoding="utf-8")
    shutil.copy(ROOT / "marker_sim" / "judges" / "promises" / "reference.toml", folder / "mine.toml")
    with zipfile.ZipFile(folder / BUILT.partition("./")[2], "w") as bundle:
        bundle.writestr(SERVICE, b"")
    # The first request imports most of moto.
    storage = S3Storage(endpoint, BUCKET, access_key="kit", read_timeout_s=60.0)
    storage._client.create_bucket(Bucket=BUCKET)
    table = unpack(TABLE, folder).rename(folder / "table")
    for path in table.rglob("*"):
        if path.is_file():
            storage.put(f"table/{path.relative_to(table).as_posix()}", path.read_bytes())
    return folder


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What users install, built from this work tree."""
    folder, uv = tmp_path_factory.mktemp("wheel"), shutil.which("uv")
    building = (
        [uv, "build", "--wheel", "--out-dir"] if uv else [sys.executable, "-m", "pip", "wheel", "--no-deps", "-w"]
    )
    subprocess.run([*building, str(folder), str(ROOT)], check=True, capture_output=True, timeout=INSTALL_S)
    (made,) = folder.glob("*.whl")
    return made


def install(python: Path, *what: str) -> None:
    """Install into the environment of this Python, or into a folder (`--target`)."""
    uv = shutil.which("uv")
    by = [uv, "pip", "install", "--python", str(python)] if uv else [str(python), "-m", "pip", "install"]
    subprocess.run([*by, "--quiet", *what], check=True, timeout=INSTALL_S)


@pytest.fixture(scope="module")
def pytest_of_users(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a pytest, which no extra for users brings."""
    folder = tmp_path_factory.mktemp("pytest")
    install(Path(sys.executable), "--target", str(folder), "pytest>=8.2")
    return folder


@pytest.fixture
def environment(extras: str, wheel: Path, inputs: Path, tmp_path: Path) -> Environment:
    """An environment with these extras alone."""
    venv, uv = tmp_path / "venv", shutil.which("uv")
    making = [uv, "venv", "--quiet", "--python", sys.executable] if uv else [sys.executable, "-m", "venv"]
    subprocess.run([*making, str(venv)], check=True, timeout=INSTALL_S)
    install(venv / "bin" / "python", f"{wheel}[{extras}]" if extras else str(wheel))
    kept = {name: text for name, text in os.environ.items() if not name.startswith(("PYTHON", "PYTEST", "VIRTUAL_ENV"))}
    settings = kept | {
        "PATH": f"{venv / 'bin'}{os.pathsep}{os.environ['PATH']}", "PYTHONUTF8": "1", "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "server-1", "AWS_SECRET_ACCESS_KEY": "secret",
    }  # fmt: skip
    return Environment(folder=shutil.copytree(inputs, tmp_path / "inputs"), settings=settings)


@pytest.mark.extras
@pytest.mark.parametrize("by", ["pip", "uvx"])
def test_it_is_installed_from_its_repository_without_a_clone(by: str, tmp_path: Path) -> None:
    url, venv, uv = f"git+file://{ROOT}", tmp_path / "venv", shutil.which("uv")
    promised = {"pip": "pip install git+URL", "uvx": "uvx --from git+URL marker-sim verify"}[by]
    assert f"`{promised}`" in README
    words = shlex.split(promised.replace("URL", url.removeprefix("git+")))
    if by == "pip":
        subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True, timeout=INSTALL_S)
        subprocess.run([str(venv / "bin" / "python"), "-m", *words], check=True, timeout=INSTALL_S)
        words = [str(venv / "bin" / "marker-sim"), "verify"]
    elif uv is None:
        pytest.skip("needs uv; `pip install uv` brings it")
    answer = run([*words, "--runs", "10"], tmp_path, {**os.environ})
    assert answer.code in JUDGED, answer.err


@pytest.mark.extras
@pytest.mark.parametrize("extras", ENVIRONMENTS, ids=lambda extras: extras or "none")
def test_what_readme_promises_of_these_extras_works_and_the_rest_says_what_it_needs(
    extras: str, environment: Environment, endpoint: str, pytest_of_users: Path, tmp_path: Path
) -> None:
    play = partial(wrong_with, extras, environment, endpoint, pytest_of_users)
    asked = [command for command, played in PLAYED.items() if played.extras or played.looks or not extras]
    first = "" if extras else play(asked.pop(0), environment.folder)  # Whose report others take.
    places = {command: tmp_path / str(number) for number, command in enumerate(asked)}
    for folder in places.values():
        shutil.copytree(environment.folder, folder)
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        wrong = [first, *pool.map(play, places.keys(), places.values())]
    assert not any(wrong), "\n\n".join(filter(None, wrong))


def wrong_with(extras: str, environment: Environment, endpoint: str, tool: Path, command: str, folder: Path) -> str:
    """What is wrong with the answer to a command in an environment with these extras, "" for nothing."""
    played, settings = PLAYED[command], environment.settings
    if played.elsewhere or tools.jars():
        settings = settings | {"JAVA_HOME": NO_JAVA}
    text = played.words.replace(AS_WRITTEN, command).replace("{s3}", endpoint)
    words = [word.replace("{here}", str(folder)) for word in shlex.split(text)]
    if "pytest" in words:
        settings = settings | {"PYTHONPATH": str(tool)}
    answer = (serve if words[1] == "serve" else run)(words, folder, settings)
    shown = f"$ {shlex.join(words)}\n{answer.out}{answer.err}[exit code {answer.code}, with {extras or 'no extra'}]"
    why = _wrong(played, extras, answer, folder)
    return why and f"{why}\n{shown}"


def _wrong(played: Played, extras: str, answer: Answer, folder: Path) -> str:
    if answer.code in JUDGED:
        made = played.makes in answer.out or (folder / played.makes).exists()
        return "" if made else f"it made no {played.makes}"
    if answer.code == 4 and f"Java and JAVA_HOME is '{NO_JAVA}'" in answer.err:
        return ""
    if brought(played.extras) <= brought(extras):
        return "README promises that it works"
    named = NAMED.findall(answer.err)
    if answer.code != 4 or len(named) != 1 or len(answer.err.splitlines()) != 1:
        return "it neither works nor names an extra in one sentence"
    if not brought(named[0]) - brought(extras):
        return f"{named[0]} is installed"
    return "" if brought(named[0]) <= brought(played.extras) else f"README promises {played.extras or 'nothing'}"
