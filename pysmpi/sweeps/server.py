"""Runs the cases that one worker thread gets: a process of one thread, which forks for each case.

A fork of a prepared process starts at once, and a case can neither change another one nor end the
worker. Requests and answers are objects on a connection.
"""

from __future__ import annotations

import contextlib
import gc
import os
import pickle
import re
import signal
import sys
import tempfile
import time
import traceback
from multiprocessing.connection import Connection, wait
from typing import Any

from pysmpi.api import run
from pysmpi.cluster.workers import begin_serving
from pysmpi.errors import PysmpiError, UsageError
from pysmpi.own_process.descendants import end_with_parent
from pysmpi.reports.result import ProgramError, Result

ENDING = 0.2  # seconds for a process that has closed its files to end
OUTPUT = 1 << 24  # bytes of a program's output that are searched for values

Row = dict[str, Any]


def serve(connection: Connection) -> None:
    """Answer requests until the other side is gone."""
    while True:
        try:
            request = connection.recv()
        except EOFError:
            return
        answer = _supervised(connection, request)
        if answer is None:
            return
        connection.send(answer)


def _supervised(connection: Connection, request: dict[str, Any]) -> Row | None:
    """The row of a case, run in a child; None if the worker went away meanwhile."""
    begin = time.perf_counter()
    mine, theirs = os.pipe()
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        end_with_parent(parent)
        os.setpgid(0, 0)
        os.close(mine)
        connection.close()
        _execute(request, theirs)
    with contextlib.suppress(OSError):  # the child may be faster
        os.setpgid(child, child)
    os.close(theirs)
    handle = os.pidfd_open(child)
    with Connection(mine, writable=False) as answers:
        ready = wait([connection, answers, handle], request["timeout"])
        row: Row | None = None
        if answers in ready:
            row = _answer(answers)
        elif not ready:
            row = {"exit_status": 124, "error": f"no end after {request['timeout']:g} s"}
        if row is None and handle not in ready:
            wait([handle], ENDING)
        # Also processes that the program has left behind.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
    os.close(handle)
    if ready == [connection]:  # a request comes only after an answer: this is the end
        return None
    if row is None:
        row = _ended(status)
    row["wall_seconds"] = time.perf_counter() - begin
    return row


def _answer(answers: Connection) -> Row | None:
    try:
        row: Row = pickle.loads(answers.recv_bytes())
    except EOFError:
        return None
    return row


def _ended(status: int) -> Row:
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        what = f"ended by signal {-code} ({signal.Signals(-code).name})"
        return {"exit_status": 128 - code, "error": what}
    return {"exit_status": code or 1, "error": f"ended in the middle with exit status {code}"}


def _execute(request: dict[str, Any], pipe: int) -> None:
    """Run a case in this process, answer, and end."""
    try:
        with tempfile.TemporaryFile() as output:
            null = os.open(os.devnull, os.O_RDWR)
            os.dup2(null, 0)
            os.dup2(output.fileno(), 1)
            os.dup2(output.fileno(), 2)
            row = run_case(request)
            for stream in (sys.stdout, sys.stderr):
                with contextlib.suppress(AttributeError, ValueError):  # gone or closed
                    stream.flush()
            if row["exit_status"] == 0:
                _search(request["values"], output, row)
    except BaseException as error:
        # A bug; the row says so, and the other cases go on.
        row = {"exit_status": 70, "error": "".join(traceback.format_exception_only(error)).strip()}
    with Connection(pipe, readable=False) as answers:
        answers.send_bytes(pickle.dumps(row))
    os._exit(0)


def run_case(request: dict[str, Any]) -> Row:
    """Run a case; return its figures, its values, and its exit status and error."""
    main = request["main"]
    try:
        if "script" in main:
            program = main["script"]
        else:
            sys.path += [one for one in main["path"] if one not in sys.path]
            try:
                program = pickle.loads(main["function"])
            except Exception as error:  # of the import of any module
                raise UsageError(f"{main['name']}: cannot be loaded: {error}") from None
        result = run(program, args=request["args"], **request["options"])
    except ProgramError as error:
        row = _figures(error.result)
        row.update(exit_status=error.exit_status, error=_first(str(error)))
        return row
    except PysmpiError as error:
        return {"exit_status": error.exit_status, "error": _first(str(error))}
    except SyntaxError as error:  # of the program: no rank has begun
        where = f"{error.filename}:{error.lineno}"
        return {"exit_status": 1, "error": f"{where}: {type(error).__name__}: {error.msg}"}
    row = _figures(result)
    row.update(exit_status=0, error="")
    if "script" not in main:
        _take(result.returns[0] if result.returns else None, row)
    return row


def _first(report: str) -> str:
    """The most telling line of a report; of a traceback also its last line."""
    lines = [line for line in report.splitlines() if line.strip()] or ["failed"]
    for number, line in enumerate(lines):
        if "Traceback (most recent call last)" in line:
            ends = [one for one in lines[number + 1 :] if not one.startswith(" ")]
            return f"{lines[0].strip()}: {ends[0]}" if ends else lines[0].strip()
    return lines[0].strip()


def _figures(result: Result) -> Row:
    ranks = max(1, len(result.ranks))
    return {
        "platform": result.platform,
        "model": result.model,
        "selector": result.selector,
        "ranks": result.nprocs,
        "seconds": result.seconds,
        "compute_seconds": sum(one["compute_seconds"] for one in result.ranks) / ranks,
        "wait_seconds": sum(one["wait_seconds"] for one in result.ranks) / ranks,
        "messages": result.messages,
        "bytes": result.bytes,
        "values": {},
    }


def _take(returned: object, row: Row) -> None:
    """The values that rank 0 of a function returned."""
    if returned is None:
        return
    values = returned if isinstance(returned, dict) else {"value": returned}
    for name, value in values.items():
        if hasattr(value, "item") and getattr(value, "ndim", 0) == 0:
            value = value.item()  # numpy's numbers
        if not isinstance(name, str) or not isinstance(value, (str, int, float)):
            row["exit_status"] = 1
            row["error"] = (
                f"rank 0 returned {name!r}: {type(value).__name__}, expected a number, a text, or "
                "a dictionary of them by name"
            )
            return
        row["values"][name] = value


def _search(values: dict[str, str], output: Any, row: Row) -> None:
    """The values that the program printed."""
    if not values:
        return
    output.seek(0)
    text = output.read(OUTPUT).decode(errors="replace")
    for name, pattern in values.items():
        match = re.search(pattern, text, re.MULTILINE)
        if match is None or match[1] is None:
            row["exit_status"] = 1
            row["error"] = (
                f"values.{name}: expected output with {pattern!r}, got none in its "
                f"{text.count(chr(10))} lines"
            )
            return
        row["values"][name] = _number(match[1])


def _number(text: str) -> int | float | str:
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(text)
    return text


def main() -> None:
    """Serve the connection that the command line names."""
    connection = begin_serving()
    # Children inherit everything that a first run loads, without a new search of the collector.
    run(_nothing, compute="none")
    gc.collect()
    gc.freeze()
    serve(connection)


def _nothing() -> None:
    pass


if __name__ == "__main__":
    main()
