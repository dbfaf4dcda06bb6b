"""Chrome's trace format (JSON), which https://ui.perfetto.dev shows.

A host is a process and a rank a thread. A rank's life is a slice, each MPI call a slice in it,
each message an arrow from the sender's slice to the receiver's. Times are microseconds. Events
are written as they end, so that a recording needs no memory.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from pysmpi.trace.events import RankPlace, TracedCall, TracedMessage
from pysmpi.trace.formats import trace_format
from pysmpi.trace.streams import Output

# Threads that programs start themselves are numbered from here on.
_FIRST_THREAD = 1 << 24


@trace_format("json", "Chrome's trace format, which ui.perfetto.dev shows")
class ChromeFormat:
    """Writes one timeline."""

    def __init__(self, path: str, compressed: bool = False) -> None:
        self.output = Output(path, compressed)
        self.hosts: dict[str, int] = {}
        self.places: list[tuple[int, int]] = []  # (process, thread) by rank
        self.threads: dict[tuple[int, int], int] = {}
        self.output.write('{"displayTimeUnit":"ns","traceEvents":[\n')
        self._first = True

    def _event(self, text: str) -> None:
        if self._first:
            self._first = False
            self.output.write(text)
        else:
            self.output.write(",\n" + text)

    def _name(self, what: str, process: int, thread: int, name: str, order: int) -> None:
        common = f'"ph":"M","pid":{process},"tid":{thread}'
        self._event(f'{{"name":"{what}_name",{common},"args":{{"name":{json.dumps(name)}}}}}')
        self._event(f'{{"name":"{what}_sort_index",{common},"args":{{"sort_index":{order}}}}}')

    def begin(self, places: Sequence[RankPlace]) -> None:
        """Name the hosts and ranks."""
        for rank, host, *_ in places:
            process = self.hosts.get(host)
            if process is None:
                process = self.hosts[host] = len(self.hosts) + 1
                self._name("process", process, 0, host, process)
            self.places.append((process, rank))
            self._name("thread", process, rank, f"rank {rank}", rank)

    def call(self, call: TracedCall) -> None:
        """A slice."""
        process, thread = self._place(call)
        arguments = [f'"{name}":{value}' for name, value in call.peers]
        if call.sent:
            arguments.append(f'"sent":{call.sent}')
        if call.received:
            arguments.append(f'"received":{call.received}')
        arguments.append(f'"at":{json.dumps(call.site)}')
        self._slice(call.name, process, thread, call.start, call.end, ",".join(arguments))

    def _place(self, call: TracedCall) -> tuple[int, int]:
        process, thread = self.places[call.rank]
        if call.thread:
            key = call.rank, call.thread
            number = self.threads.get(key)
            if number is None:
                number = self.threads[key] = _FIRST_THREAD + len(self.threads)
                name = f"rank {call.rank} thread {call.thread}"
                self._name("thread", process, number, name, call.rank)
            thread = number
        return process, thread

    def _slice(
        self, name: str, process: int, thread: int, start: float, end: float, arguments: str
    ) -> None:
        self._event(
            f'{{"name":"{name}","ph":"X","pid":{process},"tid":{thread},"ts":{start * 1e6:.4f},'
            f'"dur":{(end - start) * 1e6:.4f},"args":{{{arguments}}}}}'
        )

    def transfer(self, transfer: TracedMessage) -> None:
        """An arrow."""
        number, source, destination, tag, nbytes, start, end = transfer[:7]
        process, thread = self.places[source]
        common = f'"name":"message","cat":"message","id":{number}'
        tagged = "" if transfer.collective or transfer.internal else f',"tag":{tag}'
        self._event(
            f'{{{common},"ph":"s","pid":{process},"tid":{thread},"ts":{start * 1e6:.4f},'
            f'"args":{{"bytes":{nbytes}{tagged}}}}}'
        )
        process, thread = self.places[destination]
        self._event(
            f'{{{common},"ph":"f","bp":"e","pid":{process},"tid":{thread},"ts":{end * 1e6:.4f}}}'
        )

    def end(self, ends: Sequence[float]) -> None:
        """The lives of the ranks."""
        for rank, end in enumerate(ends):
            process, thread = self.places[rank]
            self._slice("program", process, thread, 0.0, end, "")
        self.output.write("\n]}\n")

    def close(self) -> None:
        """Close the file."""
        self.output.close()
