"""Changes of a module's syntax tree, one at a time: the generated mutants.

    negated         the condition of an if, while, conditional expression, comprehension or assert
    swapped         a comparison by its neighbour: < and <=, == and !=, in and not in, is and is not
    dropped         one operand of `and` or `or`; one keyword argument of a call
    deleted         a statement that assigns, calls, raises, returns, breaks or continues
    exchanged       two calls that follow each other
    constant        a number by its successor, a truth value by the other, a text by the empty one

A change has a key of what it changes and not of where: the function, the kind, the text of the statement, and which of
equal ones it is. So what somebody said of it is still known after edits elsewhere.
"""

from __future__ import annotations

import ast
import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

_NEIGHBOURS: dict[type[ast.cmpop], tuple[str, type[ast.cmpop]]] = {
    ast.Lt: ("<", ast.LtE), ast.LtE: ("<=", ast.Lt), ast.Gt: (">", ast.GtE), ast.GtE: (">=", ast.Gt),
    ast.Eq: ("==", ast.NotEq), ast.NotEq: ("!=", ast.Eq), ast.In: ("in", ast.NotIn), ast.NotIn: ("not in", ast.In),
    ast.Is: ("is", ast.IsNot), ast.IsNot: ("is not", ast.Is),
}  # fmt: skip
_DELETABLE = (
    ast.Assign,
    ast.AugAssign,
    ast.AnnAssign,
    ast.Expr,
    ast.Raise,
    ast.Return,
    ast.Break,
    ast.Continue,
    ast.Delete,
)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_SHOWN = 160


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One change of a module.

    module: below `marker_sim`. function: with its class; "" at the top level.
    begin, end: the text that `after` replaces, in characters.
    statement: what it is part of, on one line. line: where, for people.
    ordinal: which of those that look the same.
    """

    module: str
    function: str
    kind: str
    begin: int
    end: int
    after: str
    statement: str
    before: str
    line: int
    ordinal: int = 0

    @property
    def key(self) -> str:
        """Its name: the same while what it changes stays the same, wherever that moves to."""
        said = "\n".join(
            (self.module, self.function, self.kind, self.statement, self.before, self.after, str(self.ordinal))
        )
        return f"{self.module.rpartition('.')[2]}-{hashlib.sha256(said.encode()).hexdigest()[:10]}"

    @property
    def told(self) -> str:
        """For people, on one line."""
        place = f"{self.module}:{self.line} {self.function}".rstrip()
        return f"{place}: {self.kind}: {_line(self.before)}  ->  {_line(self.after)}"

    def applied(self, text: str) -> str:
        """The source text with it."""
        return text[: self.begin] + self.after + text[self.end :]


def changes_of(module: str, text: str) -> list[Change]:
    """Every change of a source text, in the order of the text."""
    found = list(_ModuleChanges(module, text).changes())
    seen: Counter[tuple[str, ...]] = Counter()
    numbered = []
    for change in sorted(found, key=lambda each: (each.begin, each.end, each.kind, each.after)):
        alike = (change.function, change.kind, change.statement, change.before, change.after)
        numbered.append(replace(change, ordinal=seen[alike]))
        seen[alike] += 1
    return numbered


def _line(text: str) -> str:
    shown = " ".join(text.split())
    return shown if len(shown) <= _SHOWN else f"{shown[: _SHOWN - 1]}…"


class _ModuleChanges:
    """One walk over a module."""

    def __init__(self, module: str, text: str) -> None:
        self._module = module
        self._text = text
        starts = [0]
        for line in text.splitlines(keepends=True):
            starts.append(starts[-1] + len(line))
        self._starts = starts
        self._lines = text.splitlines(keepends=True)

    def changes(self) -> Iterator[Change]:
        yield from self._in_body(ast.parse(self._text).body, "")

    def _at(self, line: int, column: int) -> int:
        """Columns of a syntax tree count bytes of UTF-8."""
        return self._starts[line - 1] + len(self._lines[line - 1].encode()[:column].decode())

    def _span(self, node: ast.stmt | ast.expr | ast.keyword) -> tuple[int, int]:
        assert node.end_lineno is not None and node.end_col_offset is not None
        return self._at(node.lineno, node.col_offset), self._at(node.end_lineno, node.end_col_offset)

    def _source(self, node: ast.stmt | ast.expr | ast.keyword) -> str:
        begin, end = self._span(node)
        return self._text[begin:end]

    def _in_body(self, body: list[ast.stmt], function: str) -> Iterator[Change]:
        for number, statement in enumerate(body):
            if isinstance(statement, ast.Import | ast.ImportFrom | ast.Global | ast.Nonlocal | ast.Pass):
                continue
            if _is_docstring(statement):
                continue
            if isinstance(statement, (*_FUNCTIONS, ast.ClassDef)):
                inner = f"{function}.{statement.name}".lstrip(".")
                yield from self._in_body(statement.body, inner)
                continue
            if function and isinstance(statement, _DELETABLE):
                yield self._change(statement, statement, function, "deleted", "pass")
            if function and number and _is_call(statement) and _is_call(body[number - 1]):
                yield self._exchanged(body[number - 1], statement, function)
            blocks = [getattr(statement, name, []) for name in ("body", "orelse", "finalbody")]
            for block in blocks:
                yield from self._in_body([each for each in block if isinstance(each, ast.stmt)], function)
            for handler in getattr(statement, "handlers", []):
                yield from self._in_body(handler.body, function)
            for case in getattr(statement, "cases", []):
                yield from self._in_body(case.body, function)
            for expression in _expressions(statement):
                yield from self._in_expression(expression, statement, function)

    def _in_expression(self, root: ast.expr, statement: ast.stmt, function: str) -> Iterator[Change]:  # noqa: C901
        for node in ast.walk(root):
            match node:
                case ast.Compare(ops=[operator], left=left, comparators=[right]) if type(operator) in _NEIGHBOURS:
                    _, other = _NEIGHBOURS[type(operator)]
                    sign = _NEIGHBOURS[other][0]
                    yield self._change(
                        node, statement, function, "swapped", f"({self._source(left)}) {sign} ({self._source(right)})"
                    )
                case ast.BoolOp(op=joined, values=values):
                    word = " and " if isinstance(joined, ast.And) else " or "
                    for dropped in range(len(values)):
                        kept = [f"({self._source(each)})" for place, each in enumerate(values) if place != dropped]
                        yield self._change(node, statement, function, "dropped", word.join(kept))
                case ast.IfExp(test=test):
                    yield self._negated(test, statement, function)
                case ast.comprehension(ifs=ifs):
                    for test in ifs:
                        yield self._negated(test, statement, function)
                case ast.Call(keywords=keywords) if keywords:
                    for keyword in keywords:
                        if keyword.arg is not None:
                            yield self._without(node, keyword, statement, function)
                case ast.Constant(value=bool() as value):
                    yield self._change(node, statement, function, "constant", str(not value))
                case ast.Constant(value=int() as value):
                    yield self._change(node, statement, function, "constant", str(value + 1))
                case ast.Constant(value=str() as value) if value and not isinstance(statement, ast.Raise):
                    quote = self._source(node)[:1]
                    if quote in "\"'":  # Otherwise it is the text of an f-string.
                        yield self._change(node, statement, function, "constant", 2 * quote)
        if isinstance(statement, ast.If | ast.While | ast.Assert) and root is statement.test:
            yield self._negated(root, statement, function)

    def _negated(self, test: ast.expr, statement: ast.stmt, function: str) -> Change:
        return self._change(test, statement, function, "negated", f"(not ({self._source(test)}))")

    def _without(self, call: ast.Call, keyword: ast.keyword, statement: ast.stmt, function: str) -> Change:
        begin, end = self._span(call)
        since, until = self._span(keyword)
        before, after = self._text[begin:since], self._text[until:end]
        rest = after.lstrip()
        kept = before + rest[1:].lstrip() if rest.startswith(",") else before.rstrip().removesuffix(",") + after
        return self._change(call, statement, function, "dropped", kept)

    def _exchanged(self, first: ast.stmt, second: ast.stmt, function: str) -> Change:
        begin, _ = self._span(first)
        _, end = self._span(second)
        between = self._text[self._span(first)[1] : self._span(second)[0]]
        after = self._source(second) + between + self._source(first)
        return self._made(begin, end, second, function, "exchanged", after)

    def _change(self, node: ast.stmt | ast.expr, statement: ast.stmt, function: str, kind: str, after: str) -> Change:
        return self._made(*self._span(node), statement, function, kind, after)

    def _made(self, begin: int, end: int, statement: ast.stmt, function: str, kind: str, after: str) -> Change:
        whole = self._source(statement).partition(":\n")[0]
        return Change(
            module=self._module, function=function, kind=kind, begin=begin, end=end, after=after,
            statement=" ".join(whole.split()), before=self._text[begin:end], line=self._text.count("\n", 0, begin) + 1,
        )  # fmt: skip


def _is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _is_call(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)


def _expressions(statement: ast.stmt) -> Iterator[ast.expr]:
    """The expressions of a statement itself, without those of statements in it."""
    for name, value in ast.iter_fields(statement):
        if name in ("annotation", "decorator_list", "targets", "target", "type_comment"):
            continue
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, ast.expr):
                yield each
            elif isinstance(each, ast.withitem):
                yield each.context_expr
            elif isinstance(each, ast.match_case) and each.guard is not None:
                yield each.guard
