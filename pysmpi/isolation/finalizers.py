"""`__del__` methods, called in the rank that their objects belong to, as in a separate process.

Python's search for cycles runs in any rank, perhaps in the middle of an MPI call, and finds objects
of all ranks. A `__del__` that it calls there cannot wait for other ranks. Methods of classes that
the program's own modules define are therefore called later: in the rank that called `gc.collect`,
as soon as this ends, and in each other rank at its next call that takes part in the simulation, or
at its end.
"""

from __future__ import annotations

import ctypes
import gc
import sys
from collections.abc import Callable, Iterator
from functools import lru_cache, wraps
from types import CodeType, FunctionType

from greenlet import GreenletExit

from pysmpi.mpi.base.attributes import TABLE
from pysmpi.mpi.base.ranks import Rank, Universe, current
from pysmpi.mpi.base.state import StateSlot
from pysmpi.mpi.calls import computing
from pysmpi.patching.lookalike import like
from pysmpi.patching.patches import Patches, is_module
from pysmpi.python.frames import instances

FINALIZERS: StateSlot[Universe, Finalizers] = StateSlot(Universe)

_METHOD = "__del__"

# Blocks of memory of the process, times the number of ranks, up to which each rank looks at all
# objects: more would take longer than a second or two.
_MOST_LOOKS = 30_000_000


class Finalizers:
    """Puts off the `__del__` methods that a search for cycles calls in a universe."""

    def __init__(self, universe: Universe) -> None:
        self.universe = universe
        self.due: dict[Rank, list[tuple[FunctionType, object]]] = {}
        self._replaced: list[tuple[type, FunctionType]] = []
        self._disarmed: list[tuple[type, FunctionType]] = []

    def begin(self) -> None:
        """A search begins: the methods that it calls only note their objects."""
        for kind, method, rank in self._methods():
            _assign(kind, self._noting(rank, method))
            self._replaced.append((kind, method))

    def end(self) -> None:
        """The search ends."""
        while self._replaced:
            kind, method = self._replaced.pop()
            _assign(kind, method)
        for rank in self.due:
            if self not in (rank.watchers or ()):
                rank.watch(self)

    def disarm(self) -> None:
        """The ranks that have not ended are stopped: a killed process calls no `__del__`."""
        self.due.clear()
        for kind, method, _ in self._methods():
            _assign(kind, _nothing)
            self._disarmed.append((kind, method))

    def rearm(self) -> None:
        """The run has ended: classes of modules that its caller has get their methods back."""
        while self._disarmed:
            kind, method = self._disarmed.pop()
            module = sys.modules.get(kind.__module__)
            if is_module(module) and vars(module) is method.__globals__:
                _assign(kind, method)

    def _methods(self) -> list[tuple[type, FunctionType, Rank]]:
        """The classes with a `__del__` from a module of a rank, this method, and the rank."""
        owners = self._owners()
        result = []
        for kind in _classes() if owners else ():
            method = kind.__dict__.get(_METHOD)
            if type(method) is FunctionType:
                rank = owners.get(id(method.__globals__))
                if rank is not None:
                    result.append((kind, method, rank))
        return result

    def _owners(self) -> dict[int, Rank]:
        """The rank of each module that belongs to one rank, by the `id` of the module's names."""
        owners: dict[int, Rank] = {}
        seen_twice: set[int] = set()
        module = sys.modules.get("__main__")
        main = vars(module) if is_module(module) else {}
        running = current()
        if running.program is not None:
            owners[id(main)] = running
        for rank in self.universe.ranks:
            if rank.program is None or rank.fiber is None:
                continue
            for module in list(rank.program.state.modules.values()):
                if is_module(module):
                    key = id(vars(module))
                    if owners.setdefault(key, rank) is not rank:
                        seen_twice.add(key)
        for key in seen_twice:
            del owners[key]
        return owners

    def _noting(self, rank: Rank, method: FunctionType) -> object:
        @wraps(method)
        def __del__(thing: object) -> None:
            self.due.setdefault(rank, []).append((method, thing))

        return __del__

    def run(self, rank: Rank) -> None:
        """Call the methods that are due in the running rank."""
        rank.unwatch(self)
        for method, thing in self.due.pop(rank, ()):
            try:
                method(thing)
            except GreenletExit:
                raise
            except BaseException as error:
                trace = error.__traceback__.tb_next if error.__traceback__ is not None else None
                sys.unraisablehook(_description()((type(error), error, trace, None, method)))

    # A watcher of the ranks for which something is due.

    def begun(self, rank: Rank) -> None:
        """A call of a rank has begun: methods that are due come before it."""
        with computing():
            self.run(rank)

    def ended(self, rank: Rank) -> None:
        """A call ends."""


def _nothing(thing: object) -> None:
    """In place of the `__del__` of objects of stopped ranks."""


def install(patches: Patches) -> None:
    """Have `gc.collect` call the methods that it has put off, until the patches are undone."""
    real = gc.collect

    def collect(generation: int = 2) -> int:
        result = real(generation)
        run_due()
        return result

    patches.set(gc, "collect", like(real, collect))


def run_due() -> None:
    """Call the methods that are due in the running rank, unless it is in a call."""
    rank = current()
    universe = getattr(rank, "universe", None)
    finalizers = None if universe is None else FINALIZERS.peek(universe)
    if finalizers is not None and not rank.in_call and type(rank) is Rank:
        finalizers.run(rank)


def call_all(spaces: list[dict[str, object]]) -> None:
    """Call the `__del__` of all objects whose class has it from a module with these names.

    At the end of a process Python finds them in attributes, closures and cycles, but not those that
    MPI's own attributes hold. Python does not call the method of an object again.
    """
    rank = current()
    universe = getattr(rank, "universe", None)
    ranks = 1 if universe is None else len(universe.ranks)
    if sys.getallocatedblocks() * ranks > _MOST_LOOKS:
        return
    own = {id(space) for space in spaces}
    kinds = set()
    for kind in _classes():
        method = getattr(kind, _METHOD, None)
        if type(method) is FunctionType and id(method.__globals__) in own:
            kinds.add(kind)
    if not kinds:
        return
    table = TABLE.peek(rank)
    kept = [] if table is None else [tuple(own.values()) for own in table.attributes.values()]
    held = {id(value) for values in kept for _, value in values}
    objects = [thing for thing in instances(kinds) if id(thing) not in held]
    call = ctypes.PYFUNCTYPE(None, ctypes.py_object)(("PyObject_CallFinalizer", ctypes.pythonapi))
    while objects:
        call(objects.pop())


@lru_cache
def defines_finalizer(code: CodeType) -> bool:
    """Whether a class in the code, at any depth, defines a `__del__`."""
    return _METHOD in code.co_names or any(
        defines_finalizer(part) for part in code.co_consts if isinstance(part, CodeType)
    )


def _assign(kind: type, method: object) -> None:
    """Set the `__del__` of a class past a `__setattr__` of its metaclass, if Python allows that."""
    try:
        type.__setattr__(kind, _METHOD, method)
    except TypeError:  # the metaclass is of C, as pybind11's
        setattr(kind, _METHOD, method)


def _classes() -> Iterator[type]:
    """All classes, each once or more."""
    kinds = type.__subclasses__(object)
    while kinds:
        kind = kinds.pop()
        yield kind
        kinds += type.__subclasses__(kind)


@lru_cache
def _description() -> Callable[[tuple[object, ...]], sys.UnraisableHookArgs]:
    """The class of the argument of `sys.unraisablehook`, which no module names."""
    kinds: list[type] = []

    class Failing:
        def __del__(self) -> None:
            raise ValueError

    hook = sys.unraisablehook
    sys.unraisablehook = lambda one: kinds.append(type(one))
    try:
        Failing()
    finally:
        sys.unraisablehook = hook
    return kinds[0]
