"""Listeners: objects that are notified of the events of a run.

A listener is any object with methods named like the events in `EVENTS`; it is notified of the
events for which it has a method. There may be several listeners at the same time. An event without
a listener costs one test of an attribute.

| event | arguments | when |
| --- | --- | --- |
| `request_started` | request, process, now | a process starts a request, before it is posted |
| `request_completed` | request, now | a request with a reported start is complete |
| `requests_joined` | request, parts | a request completes, in the background, after its parts |
| `message_matched` | send, receive, now | a message and a receive match |
| `flow_started` | send, now | the transfer of a message starts |
| `flow_ended` | send, now | the last byte of a message has arrived |
| `wait_begun` | process, requests, all, now | a process waits for all, or one, of some requests |
| `wait_ended` | process, request, now | a blocked process may continue; `request` completed last |
| `program_begun` | process, now | a process begins its program: debt, starts, schedule, waits |
| `program_ended` | process, now | the process has ended the program, also without a wait |
| `call_begun` | call | the program has entered an MPI call; its compute is billed |
| `call_ended` | call | the call is over, also by an exception; the clock has not started yet |
| `collective_entered` | contribution, rank | a rank enters a collective operation |
| `collective_left` | contribution, rank | the rank has taken its result |
| `epoch_opened` | window, rank, kind, peers | an access or exposure epoch begins |
| `epoch_closed` | window, rank, kind, peers | an access or exposure epoch ends |
| `file_accessed` | file, rank, kind, offset, nbytes | bytes of a file are read or written |
| `ticked` | | after some ten thousand events, again and again |

`now` is the simulated time (s). The kernel reports the events of requests, messages, flows, waits
and programs; the layers above report the others. A process in the background, such as that of a
non-blocking collective, has no program events. A process whose requests are complete is not
blocked: its wait begins and does not end. A sleep is a wait, whose request belongs to no message.
"""

from typing import Any, Final, Optional

EVENTS: Final = (
    "request_started",
    "request_completed",
    "requests_joined",
    "message_matched",
    "flow_started",
    "flow_ended",
    "wait_begun",
    "wait_ended",
    "program_begun",
    "program_ended",
    "call_begun",
    "call_ended",
    "collective_entered",
    "collective_left",
    "epoch_opened",
    "epoch_closed",
    "file_accessed",
    "ticked",
)


class Listeners:
    """The listeners of one run: for each event the methods to call, or None."""

    def __init__(self) -> None:
        self.all: list[Any] = []
        self.wrap: Any = None  # makes another method of each method
        self.request_started: Optional[list[Any]] = None
        self.request_completed: Optional[list[Any]] = None
        self.requests_joined: Optional[list[Any]] = None
        self.message_matched: Optional[list[Any]] = None
        self.flow_started: Optional[list[Any]] = None
        self.flow_ended: Optional[list[Any]] = None
        self.wait_begun: Optional[list[Any]] = None
        self.wait_ended: Optional[list[Any]] = None
        self.program_begun: Optional[list[Any]] = None
        self.program_ended: Optional[list[Any]] = None
        self.call_begun: Optional[list[Any]] = None
        self.call_ended: Optional[list[Any]] = None
        self.collective_entered: Optional[list[Any]] = None
        self.collective_left: Optional[list[Any]] = None
        self.epoch_opened: Optional[list[Any]] = None
        self.epoch_closed: Optional[list[Any]] = None
        self.file_accessed: Optional[list[Any]] = None
        self.ticked: Optional[list[Any]] = None

    def add(self, listener: Any) -> None:
        """Notify `listener`, too, after the earlier listeners."""
        self.all.append(listener)
        self._gather()

    def remove(self, listener: Any) -> None:
        """Remove `listener`; no effect if it is not registered."""
        self.all = [other for other in self.all if other is not listener]
        self._gather()

    def notify(self, event: str, *arguments: Any) -> None:
        """Notify the listeners of an event that is not frequent."""
        methods = getattr(self, event)
        if methods is not None:
            for method in methods:
                method(*arguments)

    def _gather(self) -> None:
        for event in EVENTS:
            methods = [
                getattr(listener, event) for listener in self.all if hasattr(listener, event)
            ]
            if self.wrap is not None:
                methods = [self.wrap(method) for method in methods]
            setattr(self, event, methods if len(methods) > 0 else None)
