"""The reader of the recorded form, which `pysmpi.trace.kinds.jsonl` writes.

A run that was killed may leave a last line that is not whole; it is left out.
"""

from __future__ import annotations

import binascii
import json
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from pysmpi.errors import UsageError
from pysmpi.trace.columns import Floats, Integers
from pysmpi.trace.events import ENTER, EventRows, MessageRows, TracedRoute
from pysmpi.trace.model import Recording
from pysmpi.trace.recorded_lines import (
    NO_RECORDING,
    Wrong,
    check_dates,
    facts_in,
    learn_site,
    made_call,
    made_communicator,
    made_match,
    made_place,
    whole_lines,
)

# Types of the numbers of columns, little-endian.
_TYPES = ("u1", "u2", "u4", "i8", "f8")

# Errors of records with other values than their writer's.
WRONG = (
    ValueError, TypeError, IndexError, KeyError, AttributeError, OverflowError, RecursionError,
)  # fmt: skip


def read_lines(path: str | os.PathLike[str]) -> Recording:
    """Read a recording. Raises UsageError for any other file, and for a wrong line."""
    name = os.fspath(path)
    found = Recording()
    sites: dict[int, str] = {}
    number = 0
    for number, line in enumerate(whole_lines(name), 1):
        try:
            record = json.loads(line)
            if number == 1:
                found.facts = facts_in(record)
            else:
                take(found, record, sites)
        except Wrong as error:
            raise UsageError(f"{name}, line {number}: {error}") from None
        except WRONG as error:
            if number == 1:
                raise UsageError(f"{name}, line 1: {NO_RECORDING}") from None
            what = line[:60].decode("utf-8", "replace")
            raise UsageError(
                f"{name}, line {number}: expected a record of a recording, got {what!r}"
            ) from error
    if number == 0:
        raise UsageError(f"{name}: expected a recording of pysmpi, got no whole line")
    return found


def take(found: Recording, record: list[Any], sites: dict[int, str]) -> None:
    """Add one record."""
    kind = record[0]
    if kind == "call":
        call = made_call(record, sites)
        if call.name:
            found.call(call)
        else:
            found.between(call)
    elif kind == "events":
        found.add_events(made_events(record))
    elif kind == "messages":
        found.add_messages(made_messages(record))
    elif kind == "route":
        found.add_route(made_route(record))
    elif kind == "site":
        learn_site(record, sites)
    elif kind == "communicator":
        communicator = made_communicator(record)
        found.communicators[communicator.number] = communicator
    elif kind == "match":
        found.match(made_match(record))
    elif kind == "rank":
        found.places.append(made_place(record))
    elif kind == "end":
        check_dates(record[1])
        found.end(record[1])
    else:
        raise Wrong(f"no such record: {kind!r}")


def made_events(record: Sequence[object]) -> EventRows:
    """The events of a record."""
    kind, process, date, a, b, x = record[1:]
    rows = EventRows(_whole(kind), _whole(process), _real(date), _whole(a), _real(b), _real(x))
    if len(set(map(len, rows))) != 1:
        raise Wrong("found columns of different lengths")
    if not all(np.isfinite(column).all() for column in rows[2:]):
        raise Wrong("a date or a size is no number")
    if len(rows.kind) and not 0 <= rows.kind.min() <= rows.kind.max() <= ENTER:
        raise Wrong(f"expected a kind of events from 0 to {ENTER}, got another number")
    return rows


def made_messages(record: Sequence[object]) -> MessageRows:
    """The messages of a record."""
    if len(record) != len(MessageRows._fields) + 1:
        raise Wrong(f"expected {len(MessageRows._fields)} columns, got {len(record) - 1}")
    rows = MessageRows(*map(_whole, record[1:]))
    if len(set(map(len, rows))) != 1:
        raise Wrong("found columns of different lengths")
    return rows


def _unpacked(column: str) -> Integers | Floats:
    """The numbers of a column that is a text."""
    kind = column[:2]
    if kind not in _TYPES or column[2:3] != ":":
        raise Wrong(f"expected a column of {', '.join(_TYPES)}, got {column[:20]!r}")
    data = binascii.a2b_base64(column[3:], strict_mode=True)
    numbers: Integers | Floats = np.frombuffer(data, f"<{kind}")
    return numbers


def _whole(values: object) -> Integers:
    if isinstance(values, str):
        column = _unpacked(values)
        if column.dtype.kind == "f":
            raise Wrong("expected columns of whole numbers")
        return column.astype(np.int64)
    if not isinstance(values, list) or not all(type(value) is int for value in values):
        raise Wrong("expected columns of whole numbers")
    try:
        return np.array(values, np.int64)
    except OverflowError:
        raise Wrong("a number is out of range") from None


def _real(values: object) -> Floats:
    if isinstance(values, str):
        return _unpacked(values).astype(np.float64)
    if not isinstance(values, list):
        raise Wrong("expected a column of numbers")
    return np.array(values, np.float64).reshape(-1)


def made_route(record: list[Any]) -> TracedRoute:
    """The route of a record."""
    _, number, links, *rest = record
    if type(number) is not int:
        raise Wrong(f"expected the number of a route, got {number!r}")
    shares = tuple(map(float, rest[0])) if rest else ()
    if shares and len(shares) != len(links):
        raise Wrong(f"expected a share for each of {len(links)} links, got {len(shares)}")
    return TracedRoute(
        number, tuple((str(name), float(capacity)) for name, capacity in links), shares
    )
