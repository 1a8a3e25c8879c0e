"""Mutation testing of the judges: which changes of a judge does no judge test notice?

    export PYTHONPATH=.
    python benchmarks/judge_mutation.py RESULTS.json [--mutants all|600] [--seed 7] [--modules store,causes]
    python benchmarks/judge_mutation.py RESULTS.json --survivors   # those once more, after tests were added
    python benchmarks/judge_mutation.py RESULTS.json --report      # runs nothing

The mutants are those of `tools/generated_mutants/syntax.py`: one change of a syntax tree at a time, in every module
below marker_sim/judges. One that changes only a message is left out, because no verdict depends on it.

One process collects the tests and learns, in a fork for each test, which functions it enters. Every mutant is a fork
of that process: the code of the living functions is exchanged, and the tests that enter them run, the fastest first,
until one fails; tests that take more than `SLOW_S` of processor are left out. A change of what runs at import replaces
the values that it changed, wherever they were imported.

RESULTS.json keeps how each mutant ended; a second call goes on where the first one was stopped. Survivors that behave
the same are reviewed by hand in judge_reviews.toml; the first score leaves them out.
"""

from __future__ import annotations

import argparse
import ast
import gc
import hashlib
import importlib
import json
import os
import signal
import sys
import time
import tomllib
import types
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import marker_sim.judges
from tools.generated_mutants.syntax import Change, changes_of

ROOT = Path(__file__).parents[1]
PACKAGE = Path(marker_sim.judges.__file__).parent
REVIEWS = Path(__file__).with_name("judge_reviews.toml")
TESTS = (
    "properties/judges",
    "properties/search/test_by_history.py",
    "properties/house/test_guarantee_examples.py",
    "properties/tables/test_profile.py",
    *(str(path.relative_to(ROOT)) for path in sorted(ROOT.glob("properties/tables/test_tables_*.py"))),
)
KILLED, TIMEOUT, SURVIVED, UNREACHED, UNTRIED = "killed", "timeout", "survived", "no test", "untried"
SLOW_S, LIMIT_S = 0.5, 90.0


def main() -> None:
    """Parse the command line, run what it asks for, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path)
    parser.add_argument("--mutants", default="all", help="how many to draw, by default all")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--modules", default="", help="comma-separated beginnings below marker_sim/judges")
    parser.add_argument("--survivors", action="store_true")
    parser.add_argument("--report", action="store_true")
    given = parser.parse_args()
    kept = json.loads(given.results.read_text()) if given.results.exists() else {"tests": {}, "mutants": {}}
    known: dict[str, str] = kept["mutants"]
    changes = {each.key: each for each in possible()}
    if not given.report:
        chosen = [c for c in changes.values() if _room(c).startswith(tuple(given.modules.split(",")))]
        if given.survivors:
            chosen = [c for c in chosen if known.get(c.key, KILLED) not in (KILLED, TIMEOUT)]
        # Any beginning of it is a fair sample; what runs at import, which every test tries, comes last.
        chosen.sort(key=lambda c: (not _runs(c), hashlib.sha256(f"{given.seed} {c.key}".encode()).digest()))
        chosen = chosen if given.mutants == "all" else chosen[: int(given.mutants)]
        chosen = [c for c in chosen if given.survivors or c.key not in known]
        os.chdir(ROOT)
        session = _Session(chosen, kept, lambda: given.results.write_text(json.dumps(kept, indent=0, sort_keys=True)))
        pytest.main(["-qs", "-n0", "--assert=plain", "-p", "no:cacheprovider", *TESTS], plugins=[session])
    report(changes, known)


def possible() -> list[Change]:
    """Every change of every judge that changes more than a message."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        name = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
        text = _text(str(path))
        for change in changes_of(name, text):
            if '"' not in change.statement or not _is_prose(change, text):
                found.append(change)
    return found


def report(changes: dict[str, Change], known: dict[str, str]) -> None:
    """Print the scores of every module, and the survivors without a review."""
    reviews = tomllib.loads(REVIEWS.read_text()) if REVIEWS.exists() else {}
    rows: dict[str, Counter[str]] = {}
    for key, change in changes.items():
        if key in known:
            alive = known[key] not in (KILLED, TIMEOUT)
            how = "equivalent" if alive and key in reviews else known[key]
            rows.setdefault(_room(change), Counter())[how] += 1
    columns = (KILLED, TIMEOUT, "equivalent", SURVIVED, UNREACHED, UNTRIED)
    print(f"\n{'module':26} {'mutants':>8} {' '.join(f'{each:>10}' for each in columns)}   score  of all")
    for module, count in [*rows.items(), ("all", sum(rows.values(), Counter[str]()))]:
        dead, total = count[KILLED] + count[TIMEOUT], count.total()
        score = f"{dead / max(1, total - count['equivalent']):7.1%} {dead / max(1, total):7.1%}"
        print(f"{module:26} {total:8} {' '.join(f'{count[each]:10}' for each in columns)} {score}")
    for key, change in changes.items():
        if known.get(key, KILLED) not in (KILLED, TIMEOUT) and key not in reviews:
            print(f"{key} {known[key]}: {change.told}")
    for key, how in sorted(reviews.items()):
        if key not in changes or known.get(key) in (KILLED, TIMEOUT):
            print(f"judge_reviews.toml: {key} is no survivor any more: {how['change']}")


def _room(change: Change) -> str:
    return change.module.removeprefix("judges.")


class _Prose(ast.NodeTransformer):
    """Replaces sentences by one word."""

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        return ast.Constant("prose")

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        return ast.Constant("prose") if isinstance(node.value, str) and " " in node.value else node


def _is_prose(change: Change, text: str) -> bool:
    """Whether it changes a sentence alone, or cannot be parsed."""
    if change.kind == "constant" and " " in change.before:
        return True
    before, after = (_without_prose(part) for part in _part(change, text))
    return after in (None, before)


def _part(change: Change, text: str) -> tuple[str, str]:
    """The function, class or statement of a module that a change is in, before and after."""
    ends = _ends(text)
    begin = max(0, *(end for end in ends if end <= change.begin))
    end = min(end for end in ends if end >= change.end)
    mutant = change.applied(text)
    return text[begin:end], mutant[begin : len(mutant) - len(text) + end]


@cache
def _text(path: str) -> str:
    """As it is when this process begins, whatever an editor does meanwhile."""
    return Path(path).read_text(encoding="utf-8")


@cache
def _ends(text: str) -> tuple[int, ...]:
    """Where the statements of a module end, in characters."""
    lines = text.splitlines(keepends=True)
    return (0, *(sum(map(len, lines[: each.end_lineno])) for each in ast.parse(text).body))


def _without_prose(text: str) -> str | None:
    try:
        return ast.dump(_Prose().visit(ast.parse(text)))
    except SyntaxError:
        return None


class _Session:
    """A pytest plugin that runs mutants where pytest would run tests."""

    def __init__(self, changes: list[Change], kept: dict[str, Any], keep: Callable[[], object]) -> None:
        self._changes, self._kept, self._keep = changes, kept, keep
        self._judges = b"".join(path.read_bytes() for path in sorted(PACKAGE.rglob("*.py")))

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        living = _living_functions()
        gc.freeze()  # A collection in a fork would copy every page.
        sys.stdout.flush()
        tests = {item: self._learned(item) for item in session.items}
        tests = dict(sorted(((i, said) for i, said in tests.items() if said["in"]), key=lambda pair: pair[1]["s"]))
        self._keep()
        print(f"{len(tests)} tests; {len(self._changes)} mutants", flush=True)
        if self._tried(None, list(tests), living) != SURVIVED:
            raise SystemExit("a test fails after the others without any mutant")
        for number, change in enumerate(self._changes, start=1):
            place = f"{change.module} {change.function}"
            chosen = [i for i, said in tests.items() if not _runs(change) or any(_within(place, p) for p in said["in"])]
            self._kept["mutants"][change.key] = self._tried(change, chosen, living)
            if number % 100 == 0 or number == len(self._changes):
                self._keep()
                print(f"{number} mutants in {sum(os.times()[:4]):.0f} s of processor", flush=True)
        return True

    def _learned(self, item: pytest.Item) -> dict[str, Any]:
        """How long a test takes and which functions of judges it enters, none if it is slow; learned once a version."""
        version = hashlib.sha256(self._judges + item.path.read_bytes()).hexdigest()
        known = self._kept["tests"].get(item.nodeid)
        if known is None or known["version"] != version:
            known = self._kept["tests"][item.nodeid] = {"version": version, **self._learn(item)}
        return dict(known)

    def _learn(self, item: pytest.Item) -> dict[str, Any]:
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            _quiet()
            signal.setitimer(signal.ITIMER_PROF, SLOW_S)
            codes: set[types.CodeType] = set()
            sys.settrace(lambda frame, event, argument: codes.add(frame.f_code))  # None: no events of its lines.
            began = time.process_time()
            passes = self._passes(item)
            sys.settrace(None)
            result = {"s": time.process_time() - began, "in": sorted({_place(code) for code in codes} - {""})}
            os.write(writing, json.dumps(result).encode() if passes else b"")
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading, "rb") as pipe:
            text = pipe.read()
        _, status = os.waitpid(child, 0)
        if os.WIFSIGNALED(status):
            return {"s": SLOW_S, "in": []}
        if not text:
            print(f"{item.nodeid} fails without any mutant, so it is left out")
            return {"s": SLOW_S, "in": []}
        learnt: dict[str, Any] = json.loads(text)
        return learnt

    def _passes(self, item: pytest.Item) -> bool:
        """Run a test without a report, which would take longer than most of them."""
        try:
            item.ihook.pytest_runtest_setup(item=item)
            item.ihook.pytest_runtest_call(item=item)
        except pytest.skip.Exception:
            pass
        except BaseException:
            return False
        with suppress(Exception):  # `tmp_path` misses the report.
            item.ihook.pytest_runtest_teardown(item=item, nextitem=None)
        return True

    def _tried(self, change: Change | None, tests: list[pytest.Item], living: dict[types.CodeType, list[Any]]) -> str:
        if not tests:
            return UNREACHED
        child = os.fork()
        if not child:
            _quiet()
            signal.setitimer(signal.ITIMER_PROF, LIMIT_S)
            try:
                done = change is None or _apply(change, living)
            except Exception:
                os._exit(1)
            if not done:
                os._exit(3)
            os._exit(0 if all(self._passes(item) for item in tests) else 1)
        _, status = os.waitpid(child, 0)
        if os.WIFSIGNALED(status):
            return TIMEOUT if os.WTERMSIG(status) == signal.SIGPROF else KILLED
        return {0: SURVIVED, 3: UNTRIED}.get(os.WEXITSTATUS(status), KILLED)


def _quiet() -> None:
    void = os.open(os.devnull, os.O_WRONLY)
    os.dup2(void, 1)
    os.dup2(void, 2)


def _place(code: types.CodeType) -> str:
    """Module and function of code of a judge, "" for any other."""
    path = Path(code.co_filename)
    if not path.is_relative_to(PACKAGE):
        return ""
    module = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
    return f"{module} {code.co_qualname.replace('.<locals>', '')}"


def _within(place: str, entered: str) -> bool:
    return entered == place or place.startswith(f"{entered}.") or entered.startswith(f"{place}.")


def _module(change: Change) -> types.ModuleType:
    return importlib.import_module(f"marker_sim.{change.module}".removesuffix(".__init__"))


def _runs(change: Change) -> bool:
    return not isinstance(vars(_module(change)).get(change.function, _module(change)), type) and change.function != ""


def _living_functions() -> dict[types.CodeType, list[Any]]:
    """The function objects of judges, by their code: also methods, properties, and closures made at import."""
    found: dict[types.CodeType, list[Any]] = {}
    for each in gc.get_objects():
        if isinstance(each, types.FunctionType) and each.__code__.co_filename.startswith(str(PACKAGE)):
            found.setdefault(each.__code__, []).append(each)
    return found


def _apply(change: Change, living: dict[types.CodeType, list[Any]]) -> bool:
    """Put a mutant in the place of the judge, in this process; False when that is not possible."""
    module = _module(change)
    path = str(module.__file__)
    text = _text(path)
    if _runs(change):
        new = compile(_part(change, text)[1], path, "exec")
        by_name = {_place(code): code for code in living}
        done = False
        for name, code in _codes(new):
            old = by_name.get(f"{change.module} {name}")
            if old is not None and _within(change.function, name):
                for function in living[old]:
                    function.__code__ = code
                    done = True
        return done
    fresh: dict[str, Any] = {**vars(module)}
    exec(compile(change.applied(text), path, "exec"), fresh)
    for name, value in vars(module).copy().items():
        other = fresh[name]
        if name == change.function or not (
            name.startswith("__") or isinstance(value, type | types.FunctionType | types.ModuleType) or value == other
        ):
            for loaded in list(sys.modules.values()):
                if vars(loaded).get(name) is value:
                    setattr(loaded, name, other)
    return True


def _codes(code: types.CodeType) -> Iterator[tuple[str, types.CodeType]]:
    for each in code.co_consts:
        if isinstance(each, types.CodeType):
            yield each.co_qualname.replace(".<locals>", ""), each
            yield from _codes(each)


if __name__ == "__main__":
    main()
