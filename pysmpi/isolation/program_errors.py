"""Reports of errors of the program: the rank, and only the program's own frames.

Frames of pysmpi and of the import system are left out; the same error in several ranks is shown
once.
"""

from __future__ import annotations

import dis
import os
import sys
import traceback
from collections.abc import Collection, Iterable, Sequence
from types import TracebackType
from typing import Any, NamedTuple

from pysmpi.errors import PysmpiInternalError
from pysmpi.mpi.base.ranks import Universe
from pysmpi.mpi.base.state import StateSlot
from pysmpi.mpi.internal_errors import may_raise_for_program
from pysmpi.python.frames import CallSite, is_library, is_ours, is_own, place, place_in
from pysmpi.text import cell, ranges

_RAISES = frozenset(dis.opmap[name] for name in ("RAISE_VARARGS", "RERAISE"))


def error_site(error: BaseException) -> CallSite | None:
    """The place of `error` in the program: the innermost frame that `call_site` chooses."""
    chosen: CallSite | None = None
    fallback: CallSite | None = None
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if not is_ours(code.co_filename):
            site = place(code, trace.tb_lineno)
            fallback = site
            if not is_library(code.co_filename):
                chosen = site
        trace = trace.tb_next
    return chosen or fallback


def strip(trace: TracebackType | None) -> TracebackType | None:
    """A copy of a traceback without our frames."""
    entries = []
    while trace is not None:
        if not is_ours(trace.tb_frame.f_code.co_filename):
            entries.append(trace)
        trace = trace.tb_next
    result: TracebackType | None = None
    for entry in reversed(entries):
        result = TracebackType(result, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return result


def _strip_stack(summary: traceback.TracebackException) -> None:
    """Remove our frames from a summary, and from those of its causes and parts."""
    pending: list[traceback.TracebackException | None] = [summary]
    seen: set[int] = set()
    while pending:
        one = pending.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        frames = [frame for frame in one.stack if not is_ours(frame.filename)]
        for frame in frames:
            site = place_in(frame.filename)
            if site is not None:
                frame.filename, frame.lineno, frame.name = site
                frame.colno = frame.end_colno = frame.end_lineno = None
            name = cell(frame.filename)
            if name is not None and frame.line is not None:  # which reads the line by its old name
                frame.filename = name
        if one.__cause__ is not None and _is_inner(one.__cause__):
            one.__cause__ = None
        if one.__context__ is not None and _is_inner(one.__context__):
            one.__context__ = None
        # Without frames, such as for a syntax error in the program itself, there is no heading
        # either.
        one.stack = traceback.StackSummary.from_list(frames) if frames else None  # type: ignore[assignment]
        pending += [one.__cause__, one.__context__, *(one.exceptions or ())]


def _is_inner(summary: traceback.TracebackException) -> bool:
    """Whether an exception never left our own code, which raised another one in its place."""
    return bool(summary.stack) and all(is_ours(frame.filename) for frame in summary.stack)


def format_error(error: BaseException) -> str:
    """The traceback of `error` as Python prints it, without our frames; ends with a newline.

    With `PYSMPI_TRACEBACK=full` in the environment our frames are shown, too.
    """
    summary = traceback.TracebackException.from_exception(error, compact=True)
    if os.environ.get("PYSMPI_TRACEBACK") != "full":
        _strip_stack(summary)
    return "".join(summary.format())


def internal_error(error: BaseException) -> PysmpiInternalError | None:
    """The bug of pysmpi that led to an exception, if there is one."""
    seen: set[int] = set()
    result: BaseException | None = error
    while result is not None and id(result) not in seen:
        if isinstance(result, PysmpiInternalError):
            return result
        if _is_own(result):
            bug = PysmpiInternalError(
                f"a bug in pysmpi: {type(result).__name__}: {_message(result)}"
            )
            bug.__cause__ = result
            return bug
        seen.add(id(result))
        result = result.__cause__ or result.__context__
    return None


def _is_own(error: BaseException) -> bool:
    """Whether an error is one of pysmpi's code outside of MPI calls, such as in `os.dup2`.

    Most errors in there are on purpose, or come from a function of Python that got the program's
    arguments. Failed assertions, unknown names and attributes that pysmpi's own objects lack never
    are.
    """
    trace = error.__traceback__
    if not isinstance(error, (AssertionError, NameError, AttributeError)) or trace is None:
        return False
    while trace.tb_next is not None:
        trace = trace.tb_next
    code = trace.tb_frame.f_code
    if not is_own(code.co_filename) or may_raise_for_program(code):
        return False
    if not isinstance(error, AttributeError):
        return True
    if code.co_code[trace.tb_lasti] in _RAISES:
        return False
    return error.obj is None or type(error.obj).__module__.partition(".")[0] == "pysmpi"


def format_internal(error: BaseException, where: str = "") -> str:
    """The report of a bug in pysmpi, with the full traceback."""
    cause = error.__cause__ or error
    trace = "".join(traceback.format_exception(cause)).rstrip("\n")
    place = f": {where}" if where else ""
    return (
        f"pysmpi: internal error{place}\n{trace}\n"
        "This is a bug in pysmpi, please report it with this output."
    )


def name_ranks(numbers: Iterable[int]) -> str:
    """`rank 3`, `ranks 0-2,4`."""
    ordered = sorted(set(numbers))
    return ("rank " if len(ordered) == 1 else "ranks ") + ranges(ordered, limit=len(ordered))


class EarlyErrors:
    """The errors that were shown before their ranks ended, because these wait for threads.

    `pids` are these ranks. Of equal errors in several ranks the first is shown.
    """

    def __init__(self) -> None:
        self.pids: set[int] = set()
        self._signatures: set[object] = set()

    def show(self, pid: int, error: BaseException) -> None:
        """Show the traceback, or the text of `sys.exit`, on the standard error of the rank."""
        if isinstance(error, SystemExit):
            if error.code is None or isinstance(error.code, int):
                return
            print(f"{name_ranks([pid])}: {error.code}", file=sys.stderr, flush=True)
        else:
            signature = _signature(error)
            if signature not in self._signatures:
                self._signatures.add(signature)
                group = group_errors([(pid, error)])[0]
                print(group, end="", file=sys.stderr, flush=True)
        self.pids.add(pid)


EARLY: StateSlot[Universe, EarlyErrors] = StateSlot(Universe, EarlyErrors)


class ErrorGroup(NamedTuple):
    """Ranks that failed in the same way: at the same lines, with an error of the same kind."""

    ranks: list[int]
    text: str  # the traceback of the first of them
    differ: bool  # whether the messages differ
    shown: bool = False  # whether the traceback was shown before the end of the ranks

    def __str__(self) -> str:
        lines = self.text.rstrip("\n").split("\n")
        if self.shown:
            last = next(line for line in reversed(lines) if line.strip())
            lines = [f"{last.strip()} (the traceback is above)"]
        lines[0] = f"{name_ranks(self.ranks)}: {lines[0]}"
        if self.differ:
            lines.append(f"(the message is that of rank {self.ranks[0]}; those of others differ)")
        return "\n".join(lines) + "\n"


def group_errors(
    errors: Sequence[tuple[int, BaseException]], shown: Collection[int] = ()
) -> list[ErrorGroup]:
    """Errors of ranks, given as (rank, exception); equal ones are joined.

    Those of the ranks in `shown` are on the screen already.

    Errors are equal if their tracebacks have the same lines and the same kind of exception. The
    message is not compared, because it often names the rank.
    """
    groups: dict[tuple[Any, ...], list[tuple[int, BaseException]]] = {}
    for rank, error in errors:
        groups.setdefault(_signature(error), []).append((rank, error))
    result = []
    for members in groups.values():
        members.sort(key=lambda member: member[0])
        messages = {_message(error) for _, error in members}
        text = format_error(members[0][1])
        early = any(rank in shown for rank, _ in members)
        result.append(ErrorGroup([rank for rank, _ in members], text, len(messages) > 1, early))
    result.sort(key=lambda group: group.ranks[0])
    return result


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # of the program's own `__str__`
        return ""


def _signature(error: BaseException) -> tuple[object, ...]:
    places: list[object] = [type(error).__module__, type(error).__qualname__]
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if not is_ours(code.co_filename):
            places.append(place(code, trace.tb_lineno)[:2])
        trace = trace.tb_next
    return tuple(places)


def format_errors(errors: Sequence[tuple[int, BaseException]], shown: Collection[int] = ()) -> str:
    """The report of the errors of ranks, given as (rank, exception), see `group_errors`."""
    return "\n".join(str(group) for group in group_errors(errors, shown))
