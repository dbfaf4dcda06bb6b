"""The frames and objects of the interpreter: the one module that looks for them.

It finds the line of the program that makes a call, and the functions that led there. All others
get names and numbers from here. Importing it imports nothing that a plain Python program has not
loaded anyway.
"""

from __future__ import annotations

import gc
import os
import sys
from _thread import get_ident
from collections.abc import Callable, Collection, Iterator
from types import CodeType, FrameType, TracebackType
from typing import Any, NamedTuple, SupportsIndex

from pysmpi.text import cell
from pysmpi.version import HOME

_COMPILED = "pysmpi" + os.sep  # prefix of the file names of compiled functions
BOUNDARY = "<pysmpi boundary>"  # the file name of generated code; no source is looked for
_OWN = (os.path.join(HOME, ""), _COMPILED, BOUNDARY)
_MACHINERY = ("<frozen importlib", "<frozen runpy", "<frozen zipimport")
# The functions of the interpreter, before those of ranks come in their place.
set_trace = sys.settrace
get_trace = sys.gettrace
_PROGRAM, _LIBRARY, _OURS = 0, 1, 2  # owners of the code of a file; the search skips the last
_FILES = 10_000  # files whose owner is kept
_origins: dict[str, int] = {}
_SITES = 10_000  # call sites that are kept
_sites: dict[tuple[int, int], tuple[CallSite, CodeType]] = {}  # by code and instruction
# Code whose place in the program is looked up when it is shown, by its file name.
_later: dict[str, Callable[[], CallSite]] = {}
_debugged = False  # whether such places are looked up at once: debuggers read files by their names
# The code of calls of functions in the place of built-in functions: the local variable `self` has
# the name of the built-in function as its `__dict__["replaces"]`.
stands: set[CodeType] = set()
# By the numbers of threads: the frames for which they execute code, if these are of other threads.
callers: dict[int, FrameType] = {}


class CallSite(NamedTuple):
    """A place in a program."""

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        return f"{shorten(self.file)}:{self.line} in {self.function}"


class _LateSite(CallSite):
    """A place that is looked up when it is used; until then, a file name."""

    _place: tuple[str, int, str] | None = None
    _make = CallSite._make  # type: ignore[assignment]  # changed copies are no late ones

    def _found(self) -> tuple[str, int, str]:
        if self._place is None:
            file, line, function = _later[str(super().__getitem__(0))]()
            self._place = file, line, function
        return self._place

    @property
    def file(self) -> str:
        return self._found()[0]

    @property
    def line(self) -> int:
        return self._found()[1]

    @property
    def function(self) -> str:
        return self._found()[2]

    def __getitem__(self, index: SupportsIndex | slice) -> object:  # type: ignore[override]
        return self._found()[index]

    def __iter__(self) -> Iterator[str | int]:
        return iter(self._found())

    def __repr__(self) -> str:
        return repr(CallSite(*self))

    def __hash__(self) -> int:
        return hash(self._found())

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, tuple) and self._found() == tuple(other))

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __lt__(self, other: tuple[str | int, ...]) -> bool:
        return self._found() < tuple(other)

    def __gt__(self, other: tuple[str | int, ...]) -> bool:
        return self._found() > tuple(other)

    def __reduce__(self) -> tuple[object, ...]:
        return CallSite, self._found()


def place_later(file: str, find: Callable[[], CallSite]) -> CallSite:
    """The place for new code, such as a call of compiled code, which `find` looks up.

    It is a file of this name until its place is shown.
    """
    if _debugged:
        return find()
    _later[file] = find
    return CallSite(file, 1, "?")


def debug() -> None:
    """Look up the places of new code at once from now on."""
    global _debugged
    _debugged = True


def place_in(file: str) -> CallSite | None:
    """The place in the program of the code of a file, if this is looked up."""
    find = _later.get(file)
    return None if find is None else find()


def place(code: CodeType, line: int) -> CallSite:
    """The place in the program of a line of code."""
    kind = _LateSite if code.co_filename in _later else CallSite
    return kind(code.co_filename, line, code.co_qualname)


def shorten(file: str) -> str:
    """A file name relative to the working directory, if the file is in there; a cell's number."""
    name = cell(file)
    if name is not None:
        return name
    if not os.path.isabs(file):
        return file
    try:
        relative = os.path.relpath(file)
    except (OSError, ValueError):
        return file
    return file if relative.startswith(os.pardir) else relative


def is_own(file: str) -> bool:
    """Whether code of `file` is pysmpi's own, interpreted, compiled or generated."""
    return file.startswith(_OWN)


def running_frame() -> FrameType:
    """The frame that calls this function."""
    return sys._getframe(1)


def is_compiled(file: str) -> bool:
    """Whether code of `file` is pysmpi's own and compiled."""
    return file.startswith(_COMPILED)


def module_of_caller(depth: int) -> object:
    """The name of the module whose code runs `depth` frames above the caller of this function."""
    return sys._getframe(depth + 1).f_globals.get("__name__")


def is_ours(file: str) -> bool:
    """Whether code of `file` is pysmpi's own or Python's machinery of imports."""
    return file.startswith(_OWN) or file.startswith(_MACHINERY)


def is_library(file: str) -> bool:
    """Whether code of `file` is installed: of Python, of a site directory or of pysmpi."""
    from pysmpi.python.installed import installed  # looks for directories: not for a plain program

    if file.startswith("<"):
        return file.startswith(("<frozen", BOUNDARY))
    return is_own(file) or installed(file)


def call_site(frame: FrameType | None) -> CallSite | None:
    """The place of `frame` in the program: its innermost frame outside pysmpi and all libraries.

    If there is none, such as in a program that is an installed module, this is the innermost frame
    outside pysmpi, or None.
    """
    outer: FrameType | None = None
    pending = callers
    while frame is not None:
        file = frame.f_code.co_filename
        origin = _origins.get(file)
        if origin is None:
            origin = _origin(file)
        if origin == _PROGRAM:
            return _site(frame)
        if origin == _LIBRARY and outer is None:
            outer = frame
        frame = frame.f_back
        if frame is None and pending:
            pending, frame = {}, pending.get(get_ident())
    return None if outer is None else _site(outer)


def _origin(file: str) -> int:
    """Return the origin of the code in a file."""
    if is_ours(file):
        origin = _OURS
    elif not is_library(file):
        origin = _PROGRAM
    else:
        origin = _OURS if file.startswith("<frozen") else _LIBRARY
    if file.startswith("<") or os.path.isabs(file):  # other names depend on the directory
        if len(_origins) >= _FILES:
            _origins.clear()
        _origins[file] = origin
    return origin


def current_site(inside: str | None = None) -> CallSite | None:
    """The place in the program of the code that runs.

    If `inside` is given, this is the place that called the innermost running function of this file,
    if there is one.
    """
    inner = sys._getframe(1)
    return call_site(inner if inside is None else _innermost(inner, inside) or inner)


def current_sites(inside: str) -> tuple[CallSite | None, CallSite | None]:
    """The place in the program that `current_site` returns, and the place in a library, if any.

    The second one called the innermost running function of the file `inside`. It is None if it is
    in the program, or the same as the first.
    """
    inner = sys._getframe(1)
    frame = _innermost(inner, inside) or inner
    first: FrameType | None = frame
    while first is not None:
        file = first.f_code.co_filename
        origin = _origins.get(file)
        if origin is None:
            origin = _origin(file)
        if origin == _PROGRAM:
            return _site(first), None
        if origin == _LIBRARY:
            break
        first = first.f_back
    site = call_site(frame)
    library = None if first is None else _site(first)
    return site, None if library == site else library


def calling_code(inside: str) -> CodeType | None:
    """The code that called the innermost running function of a file, pysmpi's own or not."""
    frame = _innermost(sys._getframe(1), inside)
    outer = None if frame is None else frame.f_back
    return None if outer is None else outer.f_code


def _innermost(frame: FrameType | None, file: str) -> FrameType | None:
    while frame is not None and frame.f_code.co_filename != file:
        frame = frame.f_back
    return frame


def import_site(package: str) -> CallSite | None:
    """The place in the program that imports a package."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _root(frame) in (package, "importlib", "pysmpi", ""):
        frame = frame.f_back
    return call_site(frame)


def greenlet_site(greenlet: Any) -> CallSite | None:
    """The place in the program of a suspended greenlet; None for others."""
    return call_site(greenlet.gr_frame)


def is_suspended(greenlet: Any) -> bool:
    """Whether a greenlet has begun and waits."""
    return greenlet.gr_frame is not None


def innermost_call(greenlet: Any) -> tuple[str, CallSite | None]:
    """The name of the function that the program's line calls, and the line, for a wait in it.

    The suspended greenlet waits outside of MPI calls, such as in `time.sleep` or for a lock.
    """
    frame: FrameType | None = greenlet.gr_frame
    site = call_site(frame)
    inner: FrameType | None = None
    while frame is not None and site is not None:
        code = frame.f_code
        if place(code, frame.f_lineno)[:2] == site[:2]:
            break
        inner, frame = frame, frame.f_back
    if inner is None:
        return "a call", site
    if inner.f_code in stands:
        return str(inner.f_locals["self"].__dict__["replaces"]), site
    return inner.f_code.co_name, site


def caller(depth: int = 1) -> tuple[CodeType, int]:
    """The code and the line that called the running function, or a function around it.

    With `depth` 1 this is the caller of the function that calls `caller`.
    """
    frame = sys._getframe(depth + 1)
    return frame.f_code, frame.f_lineno


def stack(depth: int = 1) -> Iterator[tuple[CodeType, int, str]]:
    """The code, the line and the name of the module of callers, innermost first.

    With `depth` 1 the first is the caller of the function that calls `stack`.
    """
    return _entries(sys._getframe(depth + 1))


def _entries(frame: FrameType | None) -> Iterator[tuple[CodeType, int, str]]:
    while frame is not None:
        yield frame.f_code, frame.f_lineno, frame.f_globals.get("__name__") or ""
        frame = frame.f_back


def call_path(depth: int = 1) -> int:
    """A number for the calls that led to the caller of the running function (see `stack`)."""
    frame: FrameType | None = sys._getframe(depth + 1)
    result = 0
    while frame is not None:
        result = hash((result, id(frame.f_code), frame.f_lasti))
        frame = frame.f_back
    return result


class BodySkipped(BaseException):
    """Leaves the body of a `with` statement."""


def skip_body(depth: int = 1) -> None:
    """Leave the `with` statement that a caller (see `stack`) has just entered, before its body.

    Python has no direct way to do this: a trace function raises `BodySkipped` at the first
    instruction after the target of `as`, and `__exit__` suppresses it.
    """
    import dis  # loaded only where blocks are skipped

    frame = sys._getframe(depth + 1)
    before = sys.gettrace()
    before_frame, before_opcodes = frame.f_trace, frame.f_trace_opcodes
    names = dis.opname
    code = frame.f_code.co_code

    def leave(traced: FrameType, event: str, arg: object) -> object:
        if event != "opcode":
            return leave
        name = names[code[traced.f_lasti]]
        if name == "POP_TOP" or name.startswith("STORE_"):
            return leave
        sys.settrace(before)
        traced.f_trace = before_frame
        traced.f_trace_opcodes = before_opcodes
        raise BodySkipped

    frame.f_trace_opcodes = True
    frame.f_trace = leave
    sys.settrace(lambda *_: None)


def _root(frame: FrameType) -> str:
    name = frame.f_globals.get("__name__", "")
    return str(name).partition(".")[0]


def _site(frame: FrameType) -> CallSite:
    code = frame.f_code
    # By identity: a code object is compared by all of its constants.
    key = id(code), frame.f_lasti
    result = _sites.get(key)
    if result is None:
        if len(_sites) >= _SITES:
            _sites.clear()
        result = _sites[key] = place(code, frame.f_lineno), code
    return result[0]


def forget_sites() -> None:
    """Release the code of a program that has ended."""
    _sites.clear()


def line_outside(skipped: Callable[[str], bool]) -> tuple[str, int] | None:
    """The file and line of the innermost running code whose file is not to be skipped."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and skipped(frame.f_code.co_filename):
        frame = frame.f_back
    return None if frame is None else (frame.f_code.co_filename, frame.f_lineno)


def program_frame() -> FrameType | None:
    """The innermost running frame outside pysmpi."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and is_ours(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def thread_frame(ident: int) -> FrameType | None:
    """The frame that a thread of the operating system is executing."""
    return sys._current_frames().get(ident)


def runs_inside(frame: FrameType | None, names: Collection[str]) -> bool:
    """Whether a frame is that of a function of pysmpi with one of some names, or inside of it."""
    while frame is not None:
        if frame.f_code.co_name in names and is_ours(frame.f_code.co_filename):
            return True
        frame = frame.f_back
    return False


def suspended_frame(greenlet: Any) -> FrameType | None:
    """The frame in which a greenlet is suspended, for a debugger."""
    frame: FrameType | None = greenlet.gr_frame
    return frame


def suspended_stack(greenlet: Any) -> list[FrameType]:
    """The frames of a suspended greenlet, for a debugger: the innermost outside pysmpi first."""
    stack = whole_stack(greenlet)
    for i, frame in enumerate(stack):
        if not is_ours(frame.f_code.co_filename):
            return stack[i:]
    return []


def whole_stack(greenlet: Any) -> list[FrameType]:
    """The frames of a suspended greenlet, the innermost first, also those of pysmpi."""
    frame: FrameType | None = greenlet.gr_frame
    result = []
    while frame is not None:
        result.append(frame)
        frame = frame.f_back
    return result


def trace_stack(frame: FrameType | None, function: Any) -> FrameType | None:
    """Let a function trace the lines of a frame and of its callers; returns the outermost."""
    outermost = None
    while frame is not None:
        frame.f_trace = function
        outermost = frame
        frame = frame.f_back
    return outermost


def trace_callers(
    function: Any,
    wanted: Callable[[FrameType], bool],
    answers: dict[int, tuple[CodeType, bool]],
) -> None:
    """Let a function trace the lines of those running functions that are `wanted`.

    `answers` has the answers for code that was looked at, by its identity.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        answer = answers.get(id(frame.f_code))
        if wanted(frame) if answer is None else answer[1]:
            frame.f_trace = function
        frame = frame.f_back


def variable(frame: FrameType, name: str) -> object:
    """The value of a variable of a function, or of its module; KeyError if there is none."""
    variables = frame.f_locals
    return variables[name] if name in variables else frame.f_globals[name]


def is_assigned(frame: FrameType, name: str, inside: bool = False) -> bool:
    """Whether a function, or its module unless `inside`, has a value for a name."""
    return name in frame.f_locals or (not inside and name in frame.f_globals)


def name_of_caller(function: str) -> str:
    """The name of the function that called a running function, which has a qualified name."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_qualname != function:
        frame = frame.f_back
    # Its boundary has the same name.
    while frame is not None and frame.f_code.co_qualname == function:
        frame = frame.f_back
    return "" if frame is None else frame.f_code.co_name


def depth() -> int:
    """The number of frames above the function that called the caller of this."""
    frame = sys._getframe(2)
    result = 0
    while frame.f_back is not None:
        frame = frame.f_back
        result += 1
    return result


def instances(kinds: Collection[type]) -> list[object]:
    """The objects of some classes that the garbage collector knows, the youngest first."""
    result: list[object] = [
        one for age in (2, 1, 0) for one in gc.get_objects(age) if type(one) in kinds
    ]
    result.reverse()
    return result


class Activation(NamedTuple):
    """A function that has not returned: its next instruction and its variables."""

    code: CodeType
    instruction: int
    line: int
    variables: dict[str, Any]
    globals: dict[str, Any]


def activations(greenlet: Any) -> list[Activation]:
    """The functions of a suspended greenlet outside pysmpi, the innermost first."""
    stack = suspended_stack(greenlet)
    return [_activation(frame) for frame in stack if not is_ours(frame.f_code.co_filename)]


def frame_of(generator: Any) -> Activation | None:
    """The function of a generator or a coroutine; None if it has returned."""
    for name in ("gi_frame", "cr_frame", "ag_frame"):
        frame = getattr(generator, name, None)
        if isinstance(frame, FrameType):
            return _activation(frame)
    return None


def _activation(frame: FrameType) -> Activation:
    variables = frame.f_locals
    own = {} if variables is frame.f_globals else dict(variables)
    return Activation(frame.f_code, frame.f_lasti, frame.f_lineno, own, frame.f_globals)


def variables_of(frame: FrameType) -> tuple[dict[str, Any], dict[str, Any]]:
    """The global and the local variables of a running function."""
    own = frame.f_locals
    return frame.f_globals, {} if own is frame.f_globals else dict(own)


def with_callers(error: BaseException) -> BaseException:
    """The error, with a traceback that begins with the frames which called the first one in it."""
    trace = error.__traceback__
    frame = None if trace is None else trace.tb_frame.f_back
    while frame is not None:
        trace = TracebackType(trace, frame, frame.f_lasti, frame.f_lineno)
        frame = frame.f_back
    return error.with_traceback(trace)
