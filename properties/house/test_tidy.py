"""Style as tests: what can be decided honestly from syntax trees and text, and nothing else.

Not decided here: whether a set hidden behind a name is iterated, whether a name in capitals is never changed through an
alias, whether a docstring's claim is true.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from fnmatch import fnmatch
from pathlib import Path

from properties.faces.targets import TARGETS
from properties.package_tree import MODULES, PACKAGE, ROOT, nodes_of, text_of, tree_of
from properties.volume import volume

BESIDE = ("properties", "scenarios", "benchmarks", "tools")
SUITES = tuple(sorted(path for folder in BESIDE for path in (ROOT / folder).rglob("*.py")))
LINES_MAX = 400
FUNCTION_LINES_MAX = 60
# Where the contents of a table belong to somebody else: to an implementation (`Context.process`, the place that the
# stores of a process share), or to a host, whose processes have a class of its own.
LOOSE = {"marker_sim.serve.server", "marker_sim.worlds.cluster.environment", "marker_sim.worlds.cluster.store"}

# A part may import itself and the layers above it in this list. The longest name that fits a module counts.
LAYERS = (
    ("marker_sim", "marker_sim.errors"),
    ("marker_sim.surroundings", "marker_sim.reading"),
    ("marker_sim.names", "marker_sim.timeline", "marker_sim.options"),
    ("marker_sim.unusual_names", "marker_sim.tables"),
    ("marker_sim.faults",),
    ("marker_sim.history", "marker_sim.search.seeds"),
    ("marker_sim.seams", "marker_sim.plan", "marker_sim.judges"),
    ("marker_sim.markers", "marker_sim.storages"),
    ("marker_sim.writer",),
    ("marker_sim.system", "marker_sim.serve"),
    ("marker_sim.mutants", "marker_sim.command"),
    ("marker_sim.loading", "marker_sim.outcome"),
    ("marker_sim.worlds",),
    ("marker_sim.search",),
    ("marker_sim.targets",),
    ("marker_sim.campaign",),
    ("marker_sim.report",),
    ("marker_sim.campaign.nightly",),
    ("marker_sim.tables.audit",),
    ("marker_sim.interface",),
    ("marker_sim.cli", "marker_sim.pytest_plugin"),
    ("marker_sim.__main__",),
)
JUDGES_SEE = tuple(
    f"marker_sim.{part}"
    for part in ("errors", "reading", "faults", "history", "names", "timeline", "tables.entries", "judges")
)
IMPURE = frozenset({"os", "random", "secrets", "signal", "socket", "subprocess", "threading", "time", "asyncio"})
WORLD_CALLS = frozenset(
    {"open", "print", "input", "getenv", "run", "Popen", "connect", "read_text", "write_text", "now"}
)
MUTATORS = frozenset(
    {"append", "extend", "insert", "add", "update", "setdefault", "pop", "popitem", "remove", "discard", "clear"}
)


def _name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


NAMES = frozenset(map(_name, MODULES))


def _of_each(paths: Iterable[Path]) -> Callable[[Callable[[Path], None]], Callable[[], None]]:
    """Make a check of a file a test of many, which fails with all that is wrong in any of them."""

    def decorate(check: Callable[[Path], None]) -> Callable[[], None]:
        def test() -> None:
            wrong = []
            for path in paths:
                try:
                    check(path)
                except AssertionError as error:
                    wrong.append(str(error))
            assert not wrong, "\n".join(wrong)

        test.__doc__ = check.__doc__
        return test

    return decorate


def _part(module: str) -> str:
    parts = [part for layer in LAYERS for part in layer if module == part or module.startswith(f"{part}.")]
    longest = max(parts, key=len)
    assert longest != "marker_sim" or module == "marker_sim", f"{module} has no place in LAYERS; give it one"
    return longest


def _layer(part: str) -> int:
    return next(number for number, layer in enumerate(LAYERS) if part in layer)


def _imports(path: Path) -> Iterator[str]:
    """Every module that is imported anywhere in one, also inside functions."""
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno} imports are absolute"
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                yield whole if whole in NAMES else str(node.module)


def _over(path: Path, tree: ast.Module) -> Iterator[ast.stmt]:
    """The statements that run at import, those of classes and of `if` included."""
    queue: list[ast.stmt] = list(tree.body)
    while queue:
        node = queue.pop()
        yield node
        if isinstance(node, ast.ClassDef | ast.If):
            queue += node.body


@_of_each(MODULES)
def test_imports_run_one_way(path: Path) -> None:
    part = _part(_name(path))
    for imported in _imports(path):
        if imported.split(".")[0] == "marker_sim":
            other = _part(imported)
            assert other == part or _layer(other) < _layer(part), (
                f"{_name(path)} imports {imported}, which lies below it"
            )


def test_judges_see_a_history_and_nothing_else() -> None:
    judges = [path for path in MODULES if _name(path).startswith("marker_sim.judges")]
    assert judges
    for path in judges:
        for imported in _imports(path):
            assert imported.split(".")[0] not in IMPURE, f"{_name(path)} imports {imported}: a judge is a pure function"
            if imported.startswith("marker_sim"):
                assert imported.startswith(JUDGES_SEE), f"{_name(path)} imports {imported}"


@_of_each(MODULES + SUITES)
def test_modules_and_functions_are_short(path: Path) -> None:
    text = text_of(path)
    assert text.count("\n") <= LINES_MAX, f"{path} has more than {LINES_MAX} lines"
    for node in nodes_of(path):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or 0) - node.lineno + 1
            assert length <= FUNCTION_LINES_MAX, f"{path}:{node.lineno} {node.name} has {length} lines"


def test_a_class_name_occurs_once_in_the_package() -> None:
    where: defaultdict[str, list[str]] = defaultdict(list)
    for path in MODULES:
        for node in nodes_of(path):
            if isinstance(node, ast.ClassDef):
                where[node.name].append(f"{_name(path)}:{node.lineno}")
    assert {name: places for name, places in where.items() if len(places) > 1} == {}


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Imports under TYPE_CHECKING and in functions count: they hide a circle and do not open it."""
    graph = {_name(path): {*_imports(path)} & NAMES - {_name(path)} for path in MODULES}
    circles = {module for module in NAMES if module in _reachable(graph, module)}
    assert not circles, f"they import each other in a circle: {sorted(circles)}"


def _reachable(graph: dict[str, set[str]], begin: str) -> set[str]:
    """The modules that one imports, and those that these import, and so on."""
    found: set[str] = set()
    queue = [begin]
    while queue:
        new = graph[queue.pop()] - found
        found |= new
        queue += sorted(new)
    return found


@_of_each(MODULES)
def test_what_an_object_keeps_has_names_and_types(path: Path) -> None:
    """No attribute that may change is a `dict[str, Any]`; frozen values carry JSON in one."""
    kept: list[ast.AnnAssign] = []
    for node in nodes_of(path):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Attribute):
            kept.append(node)
        elif isinstance(node, ast.ClassDef) and not any("frozen=True" in ast.unparse(d) for d in node.decorator_list):
            kept += [field for field in node.body if isinstance(field, ast.AnnAssign)]
    loose = [node for node in kept if re.search(r"dict\[str, (Any|object)\]", ast.unparse(node.annotation))]
    assert not loose or _name(path) in LOOSE, f"{path}:{loose[0].lineno} {ast.unparse(loose[0])}"


MISSES_MAX, FAILS_MAX = 0.1, 1e-4


@_of_each([path for path in SUITES if path.name.startswith("test_")])
def test_a_test_that_draws_says_how_probably_it_misses(path: Path) -> None:
    """By the mark `draws` (pyproject.toml), whose numbers must be worth saying."""
    tree = tree_of(path)
    known: dict[str, object] = {"volume": volume}
    for node in tree.body:
        if isinstance(node, ast.Assign) and re.match(r"volume\(|[\d_.]+$", text := ast.unparse(node.value)):
            known[ast.unparse(node.targets[0])] = eval(text, {}, known)
    for test in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
        if not test.name.startswith("test_") or "chaos_seed" not in {each.arg for each in test.args.args}:
            continue
        where = f"{path}:{test.lineno} {test.name}"
        marks = [mark for mark in test.decorator_list if ast.unparse(mark).startswith("pytest.mark.draws(")]
        assert len(marks) == 1 and isinstance(marks[0], ast.Call), f"{where} draws seeds; say pytest.mark.draws"
        said = {each.arg: eval(ast.unparse(each.value), {}, known) for each in marks[0].keywords}
        assert said.keys() <= {"runs", "one_in", "fails"} and said["runs"] >= 1 <= said["one_in"], where
        assert (1 - 1 / said["one_in"]) ** said["runs"] <= MISSES_MAX, f"{where} sees too little of what it says"
        assert said.get("fails", 0) <= FAILS_MAX, f"{where} fails by chance too often"


def test_no_test_relies_on_a_benchmark() -> None:
    """A test's own code lives in its suite, where all that is said about tests holds."""
    for path in (path for path in SUITES if not path.is_relative_to(ROOT / "benchmarks")):
        nodes = nodes_of(path)
        imported = [name for name in _imports(path) if name.split(".")[0] == "benchmarks"]
        named = [node for node in nodes if isinstance(node, ast.Constant) and node.value == "benchmarks"]
        assert not imported and (not named or path == Path(__file__)), f"{path} uses benchmarks/"


def test_no_module_is_called_by_a_word_that_says_nothing() -> None:
    for path in MODULES + SUITES:
        words = set(re.split(r"[._]", _name(path)))
        assert not words & {"util", "utils", "helper", "helpers", "common", "manager", "misc"}, path


@_of_each([path for path in MODULES if path.name != "__main__.py"])
def test_importing_a_module_does_no_work(path: Path) -> None:
    for node in _over(path, tree_of(path)):
        assert not isinstance(node, ast.For | ast.While | ast.With | ast.Global), f"{path}:{node.lineno} runs at import"
        if isinstance(node, ast.Expr):
            fine = isinstance(node.value, ast.Constant)
            assert fine, f"{path}:{node.lineno} runs at import"
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            for call in (n for n in ast.walk(node.value) if isinstance(n, ast.Call)):
                target = call.func
                called = target.attr if isinstance(target, ast.Attribute) else getattr(target, "id", "")
                assert called not in WORLD_CALLS, f"{path}:{node.lineno} calls {called} at import"


@_of_each(MODULES)
def test_modules_keep_no_state(path: Path) -> None:
    """A table at module level is named in capitals and the module never changes it; nothing is `global`."""
    tree = tree_of(path)
    tables = set()
    for node in tree.body:
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        tables |= {target.id for target in targets if isinstance(target, ast.Name)}
        value = getattr(node, "value", None)
        if targets and isinstance(value, ast.List | ast.Dict | ast.Set | ast.ListComp | ast.DictComp | ast.SetComp):
            for target in targets:
                assert isinstance(target, ast.Name), f"{path}:{node.lineno}"
                assert target.id.isupper() or target.id.startswith("__"), f"{path}:{node.lineno} {target.id} may change"
    for function in (n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.Lambda)):
        for inner in ast.walk(function):
            assert not isinstance(inner, ast.Global), f"{path}:{function.lineno} keeps state in the module"
            changed = _changed(inner)
            assert changed not in tables or not str(changed).isupper(), f"{path}:{function.lineno} changes {changed}"


def _changed(node: ast.AST) -> str | None:
    """The name whose content a node changes, if it is a plain name."""
    owner: ast.AST | None = None
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in MUTATORS:
        owner = node.func.value
    elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store | ast.Del):
        owner = node.value
    return owner.id if isinstance(owner, ast.Name) else None


@_of_each(MODULES)
def test_no_loop_runs_over_a_set_in_the_open(path: Path) -> None:
    """The order of a set of strings differs between processes; `sorted` makes it one."""
    for node in nodes_of(path):
        if isinstance(node, ast.For):
            over = node.iter
            called = (
                isinstance(over, ast.Call) and isinstance(over.func, ast.Name) and over.func.id in ("set", "frozenset")
            )
            assert not called and not isinstance(over, ast.Set | ast.SetComp), f"{path}:{node.lineno} loops over a set"


@_of_each([path for path in MODULES if path.name == "__init__.py"])
def test_a_package_says_what_each_of_its_modules_is_for(path: Path) -> None:
    """Patterns count: `work_*.py`. Files of other packages are named with their folder."""
    text = ast.get_docstring(tree_of(path)) or ""
    named = set(re.findall(r"(?<![\w/])[\w*]+\.py\b|(?<![\w/])\w+/(?!\w)", text))
    there = {f"{inner.parent.name}/" for inner in path.parent.glob("*/__init__.py")}
    there |= {inner.name for inner in path.parent.glob("*.py")}
    for name in sorted(named):
        assert any(fnmatch(one, name) for one in there), f"{path} names {name}, which is not there"
    if path.parent != PACKAGE:
        for one in sorted(there - {"__init__.py", "__main__.py"}):
            assert any(fnmatch(one, name) for name in named), f"{path} has no line for {one}"


def test_nothing_is_left_to_be_done_later() -> None:
    words = re.compile("|".join(("TO" + "DO", "FIX" + "ME", "X" * 3 + r"\b", "Not" + "ImplementedError")))
    for path in MODULES + SUITES:
        for number, line in enumerate(text_of(path).splitlines(), start=1):
            assert not words.search(line), f"{path}:{number}: {line.strip()}"


def test_the_command_line_knows_no_target_by_name() -> None:
    """Texts for people may name one. "mutant" is a column of a table as well."""
    names = {row.words.partition(":")[0] for row in TARGETS} - {"mutant"}
    begins = tuple(f"{row.words.partition(':')[0]}:" for row in TARGETS if ":" in row.words)
    for path in MODULES:
        if _name(path).startswith("marker_sim.cli"):
            for node in nodes_of(path):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    named = node.value in names or node.value.startswith(begins)
                    assert not named, f"{path}:{node.lineno} names {node.value!r}"


def _excuses(path: Path) -> Iterator[str]:
    """What a judge may name as an excuse: it counts the name, returns it, or keeps it as its reason.

    What a function called "..._by" returns is the cause of a breach.
    """
    tree = tree_of(path)
    causes = [f for f in ast.walk(tree) if isinstance(f, ast.FunctionDef) and f.name.endswith("_by")]
    of_causes = {node for function in causes for node in ast.walk(function)}
    for node in ast.walk(tree):
        if node in of_causes:
            continue
        match node:
            case ast.Call(func=ast.Attribute(attr="excuse"), args=args):
                told: list[ast.expr] = args
            case ast.Return(value=ast.expr() as value):
                told = [value]
            case ast.Assign(targets=[ast.Name(id="why" | "reason" | "reasons")], value=value):
                told = [value]
            case ast.Subscript(value=ast.Name(id="excused") | ast.Attribute(attr="excused"), slice=key):
                told = [key]
            case _:
                continue
        for part in (part for expression in told for part in ast.walk(expression)):
            if isinstance(part, ast.Constant) and re.fullmatch(r"[a-z]+(-[a-z]+)+", str(part.value)):
                yield str(part.value)


def test_every_excuse_has_a_row_in_the_table_and_every_row_is_an_excuse() -> None:
    judges = [path for path in MODULES if _name(path).startswith("marker_sim.judges") and "excuse" in text_of(path)]
    named = {name for path in judges if path.name not in ("baseline.py",) for name in _excuses(path)}
    section = (ROOT / "docs" / "honesty.md").read_text(encoding="utf-8").partition("\n## Excuses\n")[2]
    table = section.partition("\n## ")[0]
    rows = re.findall(r"^\| `([a-z-]+)` \|", table, flags=re.MULTILINE)
    assert sorted(rows) == sorted(named)
