"""The notes of the recorder of calls on a thread."""

from __future__ import annotations

from typing import Any

from pysmpi.kernel.requests import KernelRequest, Receive
from pysmpi.trace.events import TracedCall


class ThreadNotes:
    """The recorder's notes on a thread of a rank.

    `last` is the date up to which its time is accounted for. `starts` and `waits` are the requests
    of the program that its process executes. `awaited` are the requests that the current call may
    complete: for each the messages it consists of, its number and its handle.
    """

    def __init__(self, rank: int, number: int) -> None:
        self.rank: int = rank
        self.number: int = number
        self.last: float = 0.0
        self.call: TracedCall | None = None
        self.outer: list[TracedCall] = []
        self.starts: list[Any] = []
        self.waits: list[Any] = []
        self.all: bool = True
        self.begun: float = 0.0
        self.debt: float = 0.0
        self.entered: tuple[Any, ...] | None = None  # a collective operation, before its schedule
        self.awaited: list[tuple[Any, list[Any], int, Any]] = []
        # The receives of a schedule, if it does not say how large their messages are.
        self.received: list[Receive] | None = None
        self.posts: int = 0  # the collective call whose messages it posts
        # Requests that were posted in its name while it did something else: by others, if they are
        # `foreign`. And requests that it has posted in the names of others.
        self.late: list[Any] = []
        self.foreign: set[KernelRequest] = set()
        self.favours: list[KernelRequest] = []
