"""Lines of a program that decide by values of messages, found in its source.

With folded, skipped or missing data a run is right as long as the control flow of the program does
not depend on the data. This module reads the source: a value that comes out of a reduction, or out
of a receive buffer, flows through assignments, arguments and results of functions. A test that ends
or continues a loop, a test around MPI calls, the number of passes of a loop and the size of an
array are decisions.

Sizes flow on their own: `len(x)` depends on the values from which `x` was selected, as by
`flatnonzero` or a mask, and not on its own values.

With folded arrays the values of a rank's own arrays are wrong too, and with skipped functions those
that the functions return; both are sources then.

The flow has no order and takes names for objects: attributes of one name are one, and functions of
one name too. It finds more than there is rather than less.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Collection, Iterable, Iterator, Sequence

from pysmpi.python.records import record

# Calls whose results are values of messages: those of objects, which return them, and those of
# buffers, which write them into their last buffers.
RETURNED = frozenset(["allreduce", "reduce", "scan", "exscan"])
WRITTEN = frozenset(
    ["Allreduce", "Reduce", "Scan", "Exscan", "Reduce_scatter", "Reduce_scatter_block", "Allgather",
     "Allgatherv", "Gather", "Gatherv", "Scatter", "Scatterv", "Alltoall", "Alltoallv", "Bcast",
     "Recv", "Irecv", "Sendrecv", "Sendrecv_replace", "Iallreduce", "Ireduce", "Iallgather",
     "Ialltoall", "Ibcast"]
)  # fmt: skip
# Clocks, which show estimated times if work is skipped or folded.
_CLOCKS = frozenset(
    ["Wtime", "time", "perf_counter", "perf_counter_ns", "monotonic", "monotonic_ns", "time_ns",
     "process_time", "process_time_ns", "thread_time"]
)  # fmt: skip
_COMMUNICATING = RETURNED | WRITTEN | frozenset(
    ["Send", "Isend", "Ssend", "Issend", "Barrier", "Ibarrier", "Start", "Startall", "send",
     "isend", "ssend", "recv", "irecv", "sendrecv", "bcast", "gather", "scatter", "allgather",
     "alltoall", "barrier", "Put", "Get", "Accumulate", "Fence"]
)  # fmt: skip
_ALLOCATING = frozenset(["empty", "zeros", "ones", "full", "bytearray"])

# The positions of receive buffers among the arguments, where they are not the second one.
_FIRST = {"Recv": 0, "Irecv": 0, "Bcast": 0, "Ibcast": 0, "Sendrecv_replace": 0, "Sendrecv": 3}

# Functions that fill new arrays with numbers that may differ between ranks, and those whose results
# have sizes that depend on values.
_FILLING = frozenset(
    ["random", "normal", "standard_normal", "uniform", "gamma", "exponential", "integers", "rand",
     "randn", "randint", "linspace", "load", "fromfile", "loadtxt"]
)  # fmt: skip
_SELECTING = frozenset(
    ["flatnonzero", "nonzero", "argwhere", "where", "unique", "compress", "extract", "repeat",
     "intersect1d", "union1d", "setdiff1d", "delete", "trim_zeros"]
)  # fmt: skip
_FEW = 512  # elements of an array that is not folded

# Attributes that depend on the size of their object alone.
_OF_SIZES = frozenset(["shape", "size", "nbytes"])
# Attributes that do not depend on the values of their object.
_OF_RANKS = frozenset(["shape", "size", "ndim", "dtype", "nbytes", "rank"])

# A name of the program: a variable of a function, an attribute, or a function.
_Name = tuple[str, str]


@record(frozen=True)
class MessageValue:
    """A call whose values are those of messages, from its first line to its last one."""

    file: str
    line: int
    last: int
    call: str

    def __str__(self) -> str:
        return f"{os.path.basename(self.file)}:{self.line} ({self.call})"


@record(frozen=True)
class DataDecision:
    """A line that decides by the values of some sources."""

    file: str
    line: int
    sources: tuple[MessageValue, ...]

    def __str__(self) -> str:
        return f"{os.path.basename(self.file)}:{self.line}"


def decisions(
    file: str, arrays: bool = False, functions: Collection[str] = (), clocks: bool = False
) -> list[DataDecision]:
    """The decisions of a program in a file and in the files beside it that it imports.

    In the order of their lines; none if the source cannot be read. With `arrays`, values of arrays
    that the program makes are sources, and results of the functions with the names `functions`;
    with `clocks`, times that it measures.
    """
    flow = _Flow(arrays, frozenset(functions) | (_CLOCKS if clocks else frozenset()))
    trees = dict(_modules(file))
    assigned = {
        one.attr
        for tree in trees.values()
        for one in ast.walk(tree)
        if isinstance(one, ast.Attribute) and isinstance(one.ctx, ast.Store)
    }
    for name, tree in trees.items():
        _Reader(flow, name, assigned).visit(tree)
    flow.spread()
    return sorted(flow.decisions(), key=lambda one: (one.file != file, one.file, one.line))


class Steering:
    """The functions of a program whose results decide about its calls; modules are added."""

    def __init__(self) -> None:
        self._flow = _Flow()
        self._names: frozenset[str] | None = None

    def add(self, module: str, tree: ast.Module) -> None:
        """Read a module of the program."""
        assigned = {
            one.attr
            for one in ast.walk(tree)
            if isinstance(one, ast.Attribute) and isinstance(one.ctx, ast.Store)
        }
        _Reader(self._flow, module, assigned).visit(tree)
        self._names = None

    def __contains__(self, name: str) -> bool:
        """Whether the result of a function of this name reaches a decision."""
        if self._names is None:
            self._names = self._flow.steering()
        return name in self._names


def _modules(file: str) -> Iterator[tuple[str, ast.Module]]:
    """A file and those beside it that it imports, directly or not."""
    folder = os.path.dirname(os.path.abspath(file))
    waiting, seen = [file], {os.path.abspath(file)}
    while waiting:
        name = waiting.pop()
        try:
            with open(name, "rb") as stream:
                tree = ast.parse(stream.read(), name)
        except (OSError, SyntaxError, ValueError):
            continue
        yield name, tree
        for node in ast.walk(tree):
            modules: Sequence[str] = ()
            if isinstance(node, ast.Import):
                modules = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                modules = [node.module, *(f"{node.module}.{one.name}" for one in node.names)]
            for module in modules:
                path = os.path.join(folder, *module.split(".")) + ".py"
                if path not in seen and os.path.isfile(path):
                    seen.add(path)
                    waiting.append(path)


class _Flow:
    """The flow of values between names, and the places that decide."""

    def __init__(self, arrays: bool = False, functions: frozenset[str] = frozenset()) -> None:
        self.arrays = arrays
        self.functions = functions
        self.next: dict[_Name, set[_Name]] = {}
        self.sources: dict[_Name, set[MessageValue]] = {}
        self.tests: list[tuple[str, int, set[_Name], set[MessageValue]]] = []

    def move(self, names: Iterable[_Name], sources: Iterable[MessageValue], target: _Name) -> None:
        """Values of some names and calls reach `target`."""
        for name in names:
            self.next.setdefault(name, set()).add(target)
        self.sources.setdefault(target, set()).update(sources)

    def spread(self) -> None:
        """Follow all values to all names that they reach."""
        waiting = [name for name, sources in self.sources.items() if sources]
        while waiting:
            name = waiting.pop()
            sources = self.sources[name]
            for target in self.next.get(name, ()):
                there = self.sources.setdefault(target, set())
                if not sources <= there:
                    there |= sources
                    waiting.append(target)

    def steering(self) -> frozenset[str]:
        """The names of the functions whose results reach a decision."""
        before: dict[_Name, set[_Name]] = {}
        for name, targets in self.next.items():
            for target in targets:
                before.setdefault(target, set()).add(name)
        found: set[_Name] = set()
        waiting = [name for _, _, names, _ in self.tests for name in names]
        while waiting:
            name = waiting.pop()
            if name not in found:
                found.add(name)
                waiting += before.get(name, ())
        of_functions = ("function", _size(("function", ""))[0])
        return frozenset(name for kind, name in found if kind in of_functions)

    def decisions(self) -> Iterator[DataDecision]:
        lines: dict[tuple[str, int], set[MessageValue]] = {}
        for file, line, names, sources in self.tests:
            reached = set(sources)
            for name in names:
                reached |= self.sources.get(name, set())
            if reached:
                lines.setdefault((file, line), set()).update(reached)
        for (file, line), reached in lines.items():
            yield DataDecision(
                file, line, tuple(sorted(reached, key=lambda one: (one.file, one.line)))
            )


def _called(node: ast.Call) -> str:
    function = node.func
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _fills(node: ast.Call, called: str) -> bool:
    """Whether a call fills a new array that may be large enough to be folded."""
    if called not in _FILLING or not isinstance(node.func, ast.Attribute):
        return False
    first = node.args[0] if node.args else None
    few = isinstance(first, ast.Constant) and isinstance(first.value, int) and first.value < _FEW
    return bool(node.args or node.keywords) and not few


def _size(name: _Name) -> _Name:
    """The size of what a name stands for."""
    return (f"size of {name[0]}", name[1])


class _Reader(ast.NodeVisitor):
    """Reads a module into a flow."""

    def __init__(self, flow: _Flow, file: str, assigned: set[str]) -> None:
        self.flow = flow
        self.file = file
        self.scope = file  # of local variables
        self.globals: set[str] = set()
        self.assigned = assigned  # attributes that the program sets
        self.communicating: set[str] = set(_COMMUNICATING)
        self.loops: list[tuple[int, int]] = []  # first and last lines

    # What an expression holds

    def _name(self, name: str) -> _Name:
        return (self.file if name in self.globals else self.scope, name)

    def _read(self, node: ast.AST | None) -> tuple[set[_Name], set[MessageValue]]:
        """The names and the calls whose values an expression holds."""
        names: set[_Name] = set()
        sources: set[MessageValue] = set()
        stack = [] if node is None else [node]
        while stack:
            one = stack.pop()
            if isinstance(one, ast.Name):
                names.add(self._name(one.id))
                names.add((self.file, one.id))
            elif isinstance(one, ast.Attribute):
                names.add(("attribute", one.attr))
                if one.attr in _OF_SIZES:
                    names |= self._size_of(one.value)
                if one.attr not in self.assigned and one.attr not in _OF_RANKS:
                    stack.append(one.value)  # a view, such as `x.T`
            elif isinstance(one, ast.Call):
                called = _called(one)
                if called in RETURNED:
                    # A reduction has values of this rank, too.
                    sources.add(self._source(one, called))
                    stack += [*one.args, *(word.value for word in one.keywords)]
                    continue
                if called in self.flow.functions or self.flow.arrays and _fills(one, called):
                    sources.add(self._source(one, called))
                if called == "len":
                    for argument in one.args:
                        names |= self._size_of(argument)
                else:
                    names.add(("function", called))
                    stack += [*one.args, *(word.value for word in one.keywords)]
                    if isinstance(one.func, ast.Attribute):
                        stack.append(one.func.value)
            elif not isinstance(one, ast.Lambda):
                stack += list(ast.iter_child_nodes(one))
        return names, sources

    def _size_of(self, node: ast.AST | None) -> set[_Name]:
        """The names on which the size of an expression depends."""
        found: set[_Name] = set()
        stack = [] if node is None else [node]
        while stack:
            one = stack.pop()
            if isinstance(one, ast.Name):
                found |= {_size(self._name(one.id)), _size((self.file, one.id))}
            elif isinstance(one, ast.Attribute):
                found.add(_size(("attribute", one.attr)))
                if one.attr not in self.assigned and one.attr not in _OF_RANKS:
                    stack.append(one.value)
            elif isinstance(one, ast.Call):
                called = _called(one)
                found.add(_size(("function", called)))
                stack += [*one.args, *(word.value for word in one.keywords)]
                if isinstance(one.func, ast.Attribute):
                    stack.append(one.func.value)
                if called in _SELECTING:
                    for argument in one.args:
                        found |= self._read(argument)[0]
            elif isinstance(one, ast.Subscript):
                stack.append(one.value)
                # A mask or an array of indices.
                if not isinstance(one.slice, ast.Slice | ast.Constant | ast.Tuple):
                    found |= self._read(one.slice)[0]
            elif isinstance(one, ast.ListComp | ast.GeneratorExp | ast.SetComp | ast.DictComp):
                for part in one.generators:
                    stack.append(part.iter)
                    if part.ifs:
                        found |= self._read(part.iter)[0]
                    for test in part.ifs:
                        found |= self._read(test)[0]
            elif not isinstance(one, ast.Lambda | ast.Compare | ast.Constant):
                stack += list(ast.iter_child_nodes(one))
        return found

    def _source(self, node: ast.Call, called: str) -> MessageValue:
        return MessageValue(self.file, node.lineno, node.end_lineno or node.lineno, called)

    def _targets(self, node: ast.AST) -> Iterator[_Name]:
        """The names to which an assignment writes."""
        if isinstance(node, ast.Name):
            yield self._name(node.id)
        elif isinstance(node, ast.Attribute):
            yield ("attribute", node.attr)
        elif isinstance(node, ast.Subscript | ast.Starred):
            yield from self._targets(node.value)
        elif isinstance(node, ast.Tuple | ast.List):
            for element in node.elts:
                yield from self._targets(element)

    def _assign(self, target: ast.AST, value: ast.AST | None) -> None:
        names, sources = self._read(value)
        for name in self._targets(target):
            self.flow.move(names, sources, name)
        if not isinstance(target, ast.Subscript):
            sizes = self._size_of(value)
            for name in self._targets(target):
                self.flow.move(sizes, (), _size(name))

    # Statements

    def visit_Module(self, node: ast.Module) -> None:
        # Functions that communicate, and those that call them.
        bodies = {
            one.name: {_called(call) for call in ast.walk(one) if isinstance(call, ast.Call)}
            for one in ast.walk(node)
            if isinstance(one, ast.FunctionDef)
        }
        self.loops = [
            (one.lineno, one.end_lineno or one.lineno)
            for one in ast.walk(node)
            if isinstance(one, ast.For | ast.While)
        ]
        before = 0
        while len(self.communicating) != before:
            before = len(self.communicating)
            self.communicating |= {
                name for name, calls in bodies.items() if calls & self.communicating
            }
        self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        outer = self.scope, self.globals
        self.scope = f"{self.scope}:{node.name}"
        written = {
            one.id for one in ast.walk(node)
            if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)
        }  # fmt: skip
        parameters = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        own = written | {one.arg for one in parameters}
        declared = {
            name for one in ast.walk(node) if isinstance(one, ast.Global) for name in one.names
        }
        read = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
        self.globals = declared | (read - own)
        for index, one in enumerate(parameters):
            for key in (index, one.arg):
                passed, name = ("argument", f"{node.name}.{key}"), self._name(one.arg)
                self.flow.move([passed], (), name)
                self.flow.move([_size(passed)], (), _size(name))
        self.generic_visit(node)
        self.scope, self.globals = outer

    def visit_Return(self, node: ast.Return) -> None:
        names, sources = self._read(node.value)
        function = self.scope.rpartition(":")[2]
        self.flow.move(names, sources, ("function", function))
        self.flow.move(self._size_of(node.value), (), _size(("function", function)))
        self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        for target in node.targets:
            self._assign(target, node.value)
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self._assign(node.target, node.value)
        self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self._assign(node.target, node.value)
        self.generic_visit(node)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        self._assign(node.target, node.value)
        self.generic_visit(node)

    def visit_With(self, node: ast.With) -> None:
        for item in node.items:
            if item.optional_vars is not None:
                self._assign(item.optional_vars, item.context_expr)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        called = _called(node)
        # `object.method(x)` passes `object` as the first argument, `function(x)` does not.
        for shift in (0, 1) if isinstance(node.func, ast.Attribute) else (0,):
            for index, one in enumerate(node.args):
                self._pass(("argument", f"{called}.{index + shift}"), one)
        for word in node.keywords:
            if word.arg is not None:
                self._pass(("argument", f"{called}.{word.arg}"), word.value)
        if called in WRITTEN:
            source = self._source(node, called)
            keywords = {word.arg: word.value for word in node.keywords}
            index = _FIRST.get(called, 1)
            buffer = keywords.get("buf" if index == 0 else "recvbuf")
            if buffer is None and len(node.args) > index:
                buffer = node.args[index]
            if isinstance(buffer, ast.List | ast.Tuple) and buffer.elts:
                buffer = buffer.elts[0]  # with a count or a datatype
            if buffer is not None:
                for name in self._targets(buffer):
                    self.flow.move((), [source], name)
        elif isinstance(node.func, ast.Attribute) and called in ("append", "fill", "put", "extend"):
            for one in node.args:
                self._assign(node.func.value, one)
        if called in _ALLOCATING or called == "range":
            self._decide(node, node.args[0] if node.args else None, node.args)
        self.generic_visit(node)

    def _pass(self, target: _Name, value: ast.AST) -> None:
        names, sources = self._read(value)
        self.flow.move(names, sources, target)
        self.flow.move(self._size_of(value), (), _size(target))

    def visit_While(self, node: ast.While) -> None:
        self._decide(node, node.test)
        self.generic_visit(node)

    def visit_For(self, node: ast.For) -> None:
        self._assign(node.target, node.iter)
        self.generic_visit(node)

    def visit_If(self, node: ast.If) -> None:
        if self._matters(node):
            self._decide(node, node.test)
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        sides = [*ast.walk(node.body), *ast.walk(node.orelse)]
        if any(isinstance(one, ast.Call) and _called(one) in self.communicating for one in sides):
            self._decide(node, node.test)
        self.generic_visit(node)

    def _matters(self, node: ast.If) -> bool:
        """Whether a test decides which calls follow: it ends a loop, or has calls on one side."""
        for one in ast.walk(node):
            if isinstance(one, ast.Break | ast.Continue):
                return True
            if isinstance(one, ast.Call) and _called(one) in self.communicating:
                return True
        return any(isinstance(one, ast.Return) for one in ast.walk(node)) and self._in_loop(node)

    def _in_loop(self, node: ast.If) -> bool:
        return any(begin < node.lineno <= end for begin, end in self.loops)

    def _decide(
        self, node: ast.stmt | ast.expr, test: ast.AST | None, more: Sequence[ast.AST] = ()
    ) -> None:
        names, sources = self._read(test)
        for one in more:
            others = self._read(one)
            names |= others[0]
            sources |= others[1]
        self.flow.tests.append((self.file, node.lineno, names, sources))
