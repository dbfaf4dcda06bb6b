"""Schedules in the format GOAL, which LogGOPSim and ATLAHS read and publish (txt2bin's grammar).

A schedule has a graph of operations for each rank: computes (ns), sends and receives. An operation
`requires` the end of another one, or only its start (`irequires`). Operations of one `cpu` of a
rank take turns; those of different ones run side by side.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import partial
from typing import Final

from pysmpi.errors import UsageError
from pysmpi.io.reading import LONGEST_LINE, open_lines, too_long
from pysmpi.kernel.matching import ANY
from pysmpi.replay.goal_binary import is_binary_goal, read_binary_goal
from pysmpi.replay.goal_schedule import CALC, RECV, SEND, GoalSchedule

_KINDS: Final = {"calc": CALC, "send": SEND, "recv": RECV}
_MOST_RANKS: Final = 1 << 24
_OPERATION: Final = re.compile(
    r"(?:(\w+)\s*:\s*)?(?:(calc)\s+(\d+)|(send)\s+(\d+)\s*b\s+to\s+(\d+)"
    r"|(recv)\s+(\d+)\s*b\s+from\s+(\d+|-1))"
    r"(?:\s+tag\s+(\d+|-1))?(?:\s+cpu\s+(\d+))?(?:\s+nic\s+(\d+))?"
)
_REQUIRES: Final = re.compile(r"(\w+)\s+(i?)requires\s+(\w+)")
_RANK: Final = re.compile(r"rank\s+(\d+)\s*\{")
_RANKS: Final = re.compile(r"num_ranks\s+(\d+)")


class GoalTrace:
    """A file of schedules, one for each rank."""

    def __init__(self, name: str) -> None:
        self.schedules = read_goal(name)


def is_goal(path: str) -> bool:
    """Whether a file begins as a schedule does, in text or in the binary form."""
    if not os.path.isfile(path):
        return False
    if is_binary_goal(path):
        return True
    return next((line.startswith("num_ranks") for _, line in _lines(path)), False)


def read_goal(path: str) -> list[GoalSchedule]:
    """The schedules of all ranks. Raises UsageError with the line that is wrong."""
    if is_binary_goal(path):
        return read_binary_goal(path)
    ranks: list[GoalSchedule] = []
    current: GoalSchedule | None = None
    labels: dict[str, int] = {}
    requirements: list[tuple[int, str, bool, str]] = []
    seen: set[int] = set()

    def wrong(number: int, expected: str, got: str) -> UsageError:
        return UsageError(f"{path}, line {number}: expected {expected}, got {got[:60]!r}")

    def close(schedule: GoalSchedule) -> None:
        for number, later, at_start, earlier in requirements:
            for label in (later, earlier):
                if label not in labels:
                    raise wrong(number, "the label of an operation of this rank", label)
            after = schedule.after_start if at_start else schedule.after_end
            after.setdefault(labels[earlier], []).append(labels[later])
            schedule.missing[labels[later]] += 1

    for number, line in _lines(path):
        if current is None:
            found = _RANK.fullmatch(line)
            if found is not None:
                rank = int(found[1])
                if rank >= len(ranks) or rank in seen:
                    raise wrong(number, f"a new rank from 0 to {len(ranks) - 1}", found[1])
                seen.add(rank)
                current, labels, requirements = ranks[rank], {}, []
                continue
            count = _RANKS.fullmatch(line)
            if count is None or ranks or not 0 < int(count[1]) <= _MOST_RANKS:
                raise wrong(number, "rank N {" if ranks else "num_ranks N", line)
            ranks = [GoalSchedule() for _ in range(int(count[1]))]
            continue
        if line == "}":
            close(current)
            current = None
            continue
        operation = _OPERATION.fullmatch(line)
        if operation is None:
            after = _REQUIRES.fullmatch(line)
            if after is None:
                raise wrong(number, "an operation of GOAL (calc, send, recv) or requires", line)
            requirements.append((number, after[1], after[2] == "i", after[3]))
            continue
        label, calc, time, send, sent, to, recv, received, source, tag, cpu, _ = operation.groups()
        if label is not None:
            if label in labels:
                raise wrong(number, "a new label in this rank", label)
            labels[label] = len(current)
        peer = int(to or source or 0)
        if peer >= len(ranks) or (send and tag == "-1"):
            raise wrong(number, f"a rank from 0 to {len(ranks) - 1}, and a tag of a send", line)
        current.kinds.append(_KINDS[calc or send or recv])
        current.amounts.append(int(time or sent or received))
        current.peers.append(ANY if source == "-1" else peer)
        current.tags.append(ANY if tag == "-1" else int(tag or 0) % (1 << 32))
        current.cpus.append(int(cpu or 0))
        current.lines.append(number)
        current.missing.append(0)
    if current is not None:
        raise UsageError(
            f"{path}: expected }} at the end of the last rank, got the end of the file"
        )
    return ranks


def _lines(path: str) -> Iterator[tuple[int, str]]:
    """The lines that are not empty, with their numbers, without comments."""
    comment = False
    with open_lines(path) as stream:
        for number, data in enumerate(iter(partial(stream.readline, LONGEST_LINE), b""), 1):
            if len(data) == LONGEST_LINE:
                raise too_long(path, number)
            text = data.decode("utf-8", "replace")
            if comment or "/" in text:
                text, comment = _without_comments(text, comment)
            text = text.strip()
            if text:
                yield number, text


def _without_comments(text: str, comment: bool) -> tuple[str, bool]:
    """A line without its comments, and whether one goes on in the next line."""
    kept = []
    while text:
        if comment:
            _, end, text = text.partition("*/")
            comment = not end
            continue
        mark = re.search(r"//|/\*", text)
        if mark is None:
            kept.append(text)
            break
        kept.append(text[: mark.start()])
        if mark[0] == "//":
            break
        comment, text = True, text[mark.end() :]
    return " ".join(kept), comment
