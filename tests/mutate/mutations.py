"""The places of a source file that can be broken, each in one way.

Left out is what no test can judge: documentation, annotations, `__repr__`, messages of errors,
f-strings, decorators, conditions on the system or the version of Python, and the tuning constants
of a module (`LARGE = 64`), which change only how long a run takes.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field

FLIPPED: dict[type[ast.cmpop], str] = {
    ast.Lt: ">",
    ast.LtE: ">",
    ast.Gt: "<",
    ast.GtE: "<",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Is: "is not",
    ast.IsNot: "is",
    ast.In: "not in",
    ast.NotIn: "in",
}
EXCHANGED: dict[type[ast.operator], str] = {
    ast.Add: "-",
    ast.Sub: "+",
    ast.Mult: "/",
    ast.Div: "*",
    ast.FloorDiv: "*",
    ast.Mod: "//",
    ast.BitAnd: "|",
    ast.BitOr: "&",
    ast.LShift: ">>",
    ast.RShift: "<<",
}
SYMMETRIC = {"max", "min", "gcd", "lcm", "hypot", "isclose", "maximum", "minimum"}
UNTYPED = {"cast", "TypeVar", "NewType", "isinstance", "issubclass"}
ELSEWHERE = re.compile(r"\b(TYPE_CHECKING|sys\.platform|sys\.version_info|os\.name|__name__)\b")
CELL = re.compile(r"(?<=:)\d+\b")  # of a decision table: "<4K:2 else:3"


@dataclass(frozen=True)
class Mutation:
    """The bytes from `start` to `end` of a file, and those to put there."""

    kind: str
    line: int
    start: int
    end: int
    before: str
    after: str
    scope: tuple[str, ...] = field(default=(), compare=False)  # classes and functions around it

    def applied(self, source: bytes) -> bytes:
        """The broken file, with as many lines as the correct one."""
        part = source[self.start : self.end]
        lines = part.count(b"\n") - self.after.count("\n")
        # Only expressions in parentheses and whole statements can have several lines.
        rest = b"\n" * lines if self.kind == "statement" else b"\\\n" * lines
        return source[: self.start] + self.after.encode() + rest + source[self.end :]

    def compiles(self, source: bytes) -> bool:
        """Whether the broken file is still Python."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # `not (x) is None`
                compile(self.applied(source), "", "exec")
        except (SyntaxError, ValueError):
            return False
        return True


def mutations(source: bytes) -> list[Mutation]:
    """All places of a file, in their order. Some no longer compile when broken."""
    finder = _Finder(source)
    finder.visit(ast.parse(source))
    return sorted(finder.places, key=lambda place: (place.start, place.end, place.kind))


class _Finder(ast.NodeVisitor):
    def __init__(self, source: bytes) -> None:
        self.source = source
        self.places: list[Mutation] = []
        self._scope: list[str] = []
        self._starts = [0]
        for line in source.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        if node.name == "__repr__":
            return
        for default in [*node.args.defaults, *node.args.kw_defaults]:
            if default is not None:
                self.visit(default)
        self._body(node)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._body(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self._assigned(node, node.target, node.value)

    def visit_Assign(self, node: ast.Assign) -> None:
        self._assigned(node, node.targets[0], node.value)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self._statement(node)
        self.visit(node.value)

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Call):
            self._statement(node)
        if not isinstance(node.value, ast.Constant):
            self.visit(node.value)

    def visit_Raise(self, node: ast.Raise) -> None:
        self._statement(node)

    def visit_Continue(self, node: ast.Continue) -> None:
        self._statement(node)

    def visit_Assert(self, node: ast.Assert) -> None:
        """Types and reasons for the reader."""

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Text; Python 3.11 does not say where its parts are."""

    def visit_If(self, node: ast.If) -> None:
        self._condition(node.test)
        for child in [*node.body, *node.orelse]:
            self.visit(child)

    def visit_While(self, node: ast.While) -> None:
        self.visit(node.test)  # a loop that never begins or ends is no interesting error
        for child in [*node.body, *node.orelse]:
            self.visit(child)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self._condition(node.test)
        self.visit(node.body)
        self.visit(node.orelse)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        word = "and" if isinstance(node.op, ast.And) else "or"
        for left, right in zip(node.values, node.values[1:]):
            self._operator("boolean", left, right, word, "or" if word == "and" else "and", node)
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        left = node.left
        for operator, right in zip(node.ops, node.comparators):
            self._operator("comparison", left, right, None, FLIPPED[type(operator)], node)
            left = right
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        texts = any(
            isinstance(side, ast.JoinedStr)
            or (isinstance(side, ast.Constant) and isinstance(side.value, (str, bytes)))
            for side in ast.walk(node)
        )
        if type(node.op) in EXCHANGED and not texts:
            self._operator(
                "arithmetic", node.left, node.right, None, EXCHANGED[type(node.op)], node
            )
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        function = node.func
        name = getattr(function, "attr", None) or getattr(function, "id", "")
        if name in UNTYPED:
            return
        first = node.args[:2]
        if (
            len(first) == 2
            and name not in SYMMETRIC
            and not any(isinstance(value, ast.Starred) for value in first)
            and ast.dump(first[0]) != ast.dump(first[1])
        ):
            one, two = map(self._text, first)
            start, end = self._start(first[0]), self._end(first[1])
            between = self.source[self._end(first[0]) : self._start(first[1])]
            if between.strip() == b",":  # no parenthesis, no comment
                self._add("arguments", node, start, end, two + between.decode() + one)
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        value = node.value
        start, end = self._start(node), self._end(node)
        if isinstance(value, bool):
            self._add("constant", node, start, end, str(not value))
        elif isinstance(value, (int, float)) and abs(value) < 1e15:
            self._add("constant", node, start, end, str(value + 1))
        elif isinstance(value, str) and "\n" in value:
            raw = self.source[start:end].decode()
            cells = list(CELL.finditer(raw))
            for cell in cells if len(cells) >= 5 else []:
                offset = start + len(raw[: cell.start()].encode())
                line = node.lineno + raw.count("\n", 0, cell.start())
                self._add("cell", node, offset, offset + len(cell[0]), str(int(cell[0]) + 1), line)

    def _body(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        self._scope.append(node.name)
        for child in node.body:
            self.visit(child)
        self._scope.pop()

    def _assigned(self, node: ast.stmt, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, (ast.Attribute, ast.Subscript)):
            self._statement(node)
        plain = (ast.Constant, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop)
        number = not self._scope and all(isinstance(part, plain) for part in ast.walk(value))
        if not (number and isinstance(target, ast.Name) and target.id.isupper()):
            self.visit(value)

    def _statement(self, node: ast.stmt) -> None:
        self._add("statement", node, self._start(node), self._end(node), "pass")

    def _condition(self, test: ast.expr) -> None:
        if ELSEWHERE.search(self._text(test)):
            return
        start, end = self._start(test), self._end(test)
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            after = self._text(test.operand)
            if isinstance(test.operand, (ast.BoolOp, ast.Compare)):
                after = f"({after})"
        else:
            after = f"(not ({self._text(test)}))"
        self._add("branch", test, start, end, after)
        self.visit(test)

    def _operator(
        self,
        kind: str,
        left: ast.expr,
        right: ast.expr,
        before: str | None,
        after: str,
        node: ast.expr,
    ) -> None:
        start, end = self._end(left), self._start(right)
        between = self.source[start:end].decode()
        parts = re.fullmatch(r"([\s)]*)([^\s()#]+(?: not| in)?)([\s(]*)", between)
        if parts is not None and (before is None or parts[2] == before):
            self._add(kind, node, start, end, parts[1] + after + parts[3])

    def _add(
        self, kind: str, node: ast.expr | ast.stmt, start: int, end: int, after: str, line: int = 0
    ) -> None:
        before = self.source[start:end].decode()
        place = Mutation(kind, line or node.lineno, start, end, before, after, tuple(self._scope))
        self.places.append(place)

    def _start(self, node: ast.expr | ast.stmt) -> int:
        return self._starts[node.lineno - 1] + node.col_offset

    def _end(self, node: ast.expr | ast.stmt) -> int:
        assert node.end_lineno is not None and node.end_col_offset is not None
        return self._starts[node.end_lineno - 1] + node.end_col_offset

    def _text(self, node: ast.expr) -> str:
        return self.source[self._start(node) : self._end(node)].decode()


def identifiers(source: bytes, place: Mutation) -> Iterator[str]:
    """The names of the scope and of the line of a place, most telling first."""
    yield from reversed(place.scope)
    line = source.splitlines()[place.line - 1].decode()
    yield from re.findall(r"[A-Za-z_]\w{3,}", line)
