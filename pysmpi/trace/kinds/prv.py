"""Paraver's trace format: records in `run.prv`, names in `run.pcf`, the rows' names in `run.row`.

A host is a node, a core of it a processor, a rank a task, a thread of it a thread. Each call is a
state and an event with the types and the values of Extrae, so that its configurations show them;
point-to-point messages are communications. Times are nanoseconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from pysmpi.trace.events import RankPlace, TracedCall, TracedMessage
from pysmpi.trace.formats import trace_format
from pysmpi.trace.streams import Output

# The date of the format's first line would differ from run to run.
_DATE: Final = "01/01/2000 at 00:00"
_RUNNING, _OTHERS = 1, 15
_STATES: Final = {
    0: ("Idle", "117,195,255"),
    _RUNNING: ("Running", "0,0,255"),
    3: ("Waiting a message", "255,0,0"),
    4: ("Blocking Send", "255,0,174"),
    5: ("Synchronization", "179,0,0"),
    6: ("Test/Probe", "0,255,0"),
    8: ("Wait/WaitAll", "235,0,0"),
    10: ("Immediate Send", "255,0,255"),
    11: ("Immediate Receive", "100,100,177"),
    12: ("I/O", "172,174,41"),
    13: ("Group Communication", "255,144,26"),
    _OTHERS: ("Others", "192,224,0"),
    16: ("Send Receive", "66,66,66"),
}
_STATE_OF: Final = {
    **dict.fromkeys(("send", "ssend", "bsend", "rsend"), 4),
    **dict.fromkeys(("recv", "mrecv"), 3),
    **dict.fromkeys(("isend", "issend", "ibsend", "irsend"), 10),
    **dict.fromkeys(("irecv", "imrecv"), 11),
    **dict.fromkeys(("wait", "waitall", "waitany", "waitsome"), 8),
    **dict.fromkeys(
        ("test", "testall", "testany", "testsome", "probe", "iprobe", "mprobe", "improbe"), 6
    ),
    **dict.fromkeys(("sendrecv", "sendrecv_replace"), 16),
    "barrier": 5,
    **dict.fromkeys(
        (
            "bcast", "reduce", "allreduce", "alltoall", "alltoallv", "alltoallw", "gather",
            "gatherv", "scatter", "scatterv", "allgather", "allgatherv", "reduce_scatter",
            "reduce_scatter_block", "scan", "exscan",
        ),
        13,
    ),
}  # fmt: skip
# Types of events, and the calls whose values Extrae has given.
_POINT_TO_POINT, _COLLECTIVE, _OTHER = 50000001, 50000002, 50000003
_TYPES: Final = {
    _POINT_TO_POINT: "MPI Point-to-point",
    _COLLECTIVE: "MPI Collective Comm",
    _OTHER: "MPI Other",
}
_VALUES: Final = {
    name: value
    for value, name in enumerate(
        "send recv isend irecv wait waitall bcast barrier reduce allreduce alltoall alltoallv "
        "gather gatherv scatter scatterv allgather allgatherv".split(),
        1,
    )
}
_OWN: Final = 1000  # the first value of other calls
# What Paraver's configurations expect at the begin of the file of names.
_OPTIONS: Final = """\
DEFAULT_OPTIONS

LEVEL               THREAD
UNITS               NANOSEC
LOOK_BACK           100
SPEED               1
FLAG_ICONS          ENABLED
NUM_OF_STATE_COLORS 1000
YMAX_SCALE          37


DEFAULT_SEMANTIC

THREAD_FUNC          State As Is


"""


@trace_format("prv", "Paraver's format: run.prv, run.pcf and run.row", several=True)
class ParaverFormat:
    """Collects one timeline and writes it when it is complete."""

    def __init__(self, path: str, compressed: bool = False) -> None:
        self.output = Output(path, compressed)
        self.base = Path(path.removesuffix(".gz")).with_suffix("")
        self.places: list[RankPlace] = []
        self.calls: list[TracedCall] = []
        self.messages: list[TracedMessage] = []
        self._names: dict[str, int] = {}  # values of events by calls

    def begin(self, places: Sequence[RankPlace]) -> None:
        """Ranks were started."""
        self.places += places

    def call(self, call: TracedCall) -> None:
        """A state and its events."""
        call.operations = []
        self.calls.append(call)

    def transfer(self, transfer: TracedMessage) -> None:
        """A communication, if it is of the program."""
        if not transfer.collective and not transfer.internal:
            self.messages.append(transfer)

    def end(self, ends: Sequence[float]) -> None:
        """Write the three files."""
        cores: dict[str, list[int]] = {}
        for place in self.places:
            used = cores.setdefault(place.host, [])
            if place.core not in used:
                used.append(place.core)
        processors = {
            pair: number
            for number, pair in enumerate(
                ((host, core) for host, used in cores.items() for core in sorted(used)), 1
            )
        }
        cpus = [processors[place.host, place.core] for place in self.places]
        threads: list[dict[int, int]] = [{0: 1} for _ in self.places]
        for call in self.calls:
            threads[call.rank].setdefault(call.thread, len(threads[call.rank]) + 1)
        self._write_records(list(ends), cores, cpus, threads)
        self._write_names()
        self._write_rows(cores, threads)

    def close(self) -> None:
        """Close the file."""
        self.output.close()

    def _write_records(
        self,
        ends: list[float],
        cores: dict[str, list[int]],
        cpus: list[int],
        threads: list[dict[int, int]],
    ) -> None:
        hosts = {host: number for number, host in enumerate(cores, 1)}
        sizes = ",".join(str(len(used)) for used in cores.values())
        tasks = ",".join(
            f"{len(own)}:{hosts[place.host]}" for own, place in zip(threads, self.places)
        )
        count = len(self.places)
        write = self.output.write
        write(
            f"#Paraver ({_DATE}):{_ns(max(ends, default=0.0))}_ns:{len(hosts)}({sizes}):1:"
            f"{count}({tasks}),1\n"
        )
        write(f"c:1:1:{count}:{':'.join(str(rank + 1) for rank in range(count))}\n")
        numbers: dict[str, int] = {}
        # Rows of one time: states, the ends of events, other events, communications.
        rows: list[tuple[int, int, str]] = []
        done: dict[tuple[int, int], int] = {}
        for call in sorted(self.calls, key=lambda one: (one.start, one.end)):
            thread = threads[call.rank][call.thread]
            who = f"{cpus[call.rank]}:1:{call.rank + 1}:{thread}"
            begin, end = _ns(call.start), _ns(call.end)
            before = done.get((call.rank, thread), 0 if thread == 1 else begin)
            if begin > before:
                rows.append((before, 0, f"1:{who}:{before}:{begin}:{_RUNNING}"))
            name = call.name.lower()
            if end > begin:
                rows.append((begin, 0, f"1:{who}:{begin}:{end}:{_STATE_OF.get(name, _OTHERS)}"))
            kind, value = _type_of(name), _VALUES.get(name, 0)
            if not value:
                value = _OWN + numbers.setdefault(name, len(numbers))
            rows.append((begin, 2, f"2:{who}:{begin}:{kind}:{value}"))
            rows.append((end, 1 if end > begin else 3, f"2:{who}:{end}:{kind}:0"))
            done[call.rank, thread] = end
        for rank, seconds in enumerate(ends):
            before, end = done.get((rank, 1), 0), _ns(seconds)
            if end > before:
                rows.append((before, 0, f"1:{cpus[rank]}:1:{rank + 1}:1:{before}:{end}:{_RUNNING}"))
        for one in self.messages:
            first, last = _ns(one.posted or one.start), _ns(one.ready or one.end)
            rows.append((
                first, 4,
                f"3:{cpus[one.source]}:1:{one.source + 1}:1:{first}:{_ns(one.start)}:"
                f"{cpus[one.destination]}:1:{one.destination + 1}:1:{last}:{_ns(one.end)}:"
                f"{one.nbytes}:{one.tag}",
            ))  # fmt: skip
        rows.sort(key=lambda row: row[:2])
        for _, _, text in rows:
            write(f"{text}\n")
        self._names = {**_VALUES, **{name: _OWN + number for name, number in numbers.items()}}

    def _write_names(self) -> None:
        parts = [_OPTIONS, "STATES\n"]
        parts += [f"{number}    {name}\n" for number, (name, _) in _STATES.items()]
        parts.append("\n\nSTATES_COLOR\n")
        parts += [f"{number}    {{{color}}}\n" for number, (_, color) in _STATES.items()]
        shown = {call.name.lower(): call.name for call in self.calls}
        for kind, title in _TYPES.items():
            parts.append(f"\n\nEVENT_TYPE\n9    {kind}    {title}\nVALUES\n0      Outside MPI\n")
            parts += [
                f"{value}      MPI_{shown[name][:1].upper()}{shown[name][1:]}\n"
                for name, value in self._names.items()
                if name in shown and _type_of(name) == kind
            ]
        self._write(".pcf", "".join(parts))

    def _write_rows(self, cores: dict[str, list[int]], threads: list[dict[int, int]]) -> None:
        names = {
            "CPU": [f"{host} core {core}" for host, used in cores.items() for core in sorted(used)],
            "NODE": list(cores),
            "TASK": [f"rank {place.rank}" for place in self.places],
            "THREAD": [
                f"rank {rank}" + (f" thread {number}" if number > 1 else "")
                for rank, own in enumerate(threads)
                for number in own.values()
            ],
        }
        self._write(
            ".row",
            "\n".join(
                f"LEVEL {level} SIZE {len(rows)}\n" + "".join(f"{name}\n" for name in rows)
                for level, rows in names.items()
            ),
        )

    def _write(self, suffix: str, text: str) -> None:
        Path(f"{self.base}{suffix}").write_text(text, encoding="utf-8")


def _type_of(name: str) -> int:
    state = _STATE_OF.get(name, _OTHERS)
    if state in (5, 13):
        return _COLLECTIVE
    return _OTHER if state == _OTHERS else _POINT_TO_POINT


def _ns(seconds: float) -> int:
    return round(seconds * 1e9)
