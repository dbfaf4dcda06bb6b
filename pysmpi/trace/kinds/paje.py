"""Paje's trace format, which ViTE and pj_dump show: ranks in hosts, calls as states, messages as
links. Events are in the order of time, as readers of the format require.
"""

from __future__ import annotations

from collections.abc import Sequence

from pysmpi.trace.events import RankPlace, TracedCall, TracedMessage
from pysmpi.trace.formats import trace_format
from pysmpi.trace.streams import Output

# The events of the format, and their fields (Paje trace file, version 1.2.5).
_HEADER = """\
%EventDef PajeDefineContainerType 0
% Alias string
% Type string
% Name string
%EndEventDef
%EventDef PajeDefineStateType 1
% Alias string
% Type string
% Name string
%EndEventDef
%EventDef PajeDefineLinkType 2
% Alias string
% Type string
% StartContainerType string
% EndContainerType string
% Name string
%EndEventDef
%EventDef PajeDefineEntityValue 3
% Alias string
% Type string
% Name string
% Color color
%EndEventDef
%EventDef PajeCreateContainer 4
% Time date
% Alias string
% Type string
% Container string
% Name string
%EndEventDef
%EventDef PajeDestroyContainer 5
% Time date
% Type string
% Name string
%EndEventDef
%EventDef PajePushState 6
% Time date
% Type string
% Container string
% Value string
%EndEventDef
%EventDef PajePopState 7
% Time date
% Type string
% Container string
%EndEventDef
%EventDef PajeStartLink 8
% Time date
% Type string
% Container string
% Value string
% StartContainer string
% Key string
%EndEventDef
%EventDef PajeEndLink 9
% Time date
% Type string
% Container string
% Value string
% EndContainer string
% Key string
%EndEventDef
0 HOST 0 "host"
0 RANK HOST "rank"
1 CALL RANK "MPI call"
2 MESSAGE 0 RANK RANK "message"
"""
_DESTROY, _POP, _END_LINK, _START_LINK, _PUSH, _CREATE = range(6)
# Colours of states by a hash of the name would differ from run to run.
_COLORS = ("0 0 1", "1 0 0", "0 0.5 0", "0.8 0.6 0", "0.5 0 0.5", "0 0.6 0.6", "0.6 0.3 0",
           "0.3 0.3 0.3")  # fmt: skip


@trace_format("paje", "Paje's trace format, which ViTE shows")
class PajeFormat:
    """Collects one timeline and writes it when it is complete."""

    def __init__(self, path: str, compressed: bool = False) -> None:
        self.output = Output(path, compressed)
        self.places: list[RankPlace] = []
        self.names: dict[str, int] = {}
        self.rows: list[tuple[float, int, str]] = []

    def begin(self, places: Sequence[RankPlace]) -> None:
        """Ranks were started."""
        self.places += places

    def call(self, call: TracedCall) -> None:
        """A state; those of threads of one rank may overlap, so only the main one has states."""
        if call.thread:
            return
        value = self.names.setdefault(call.name, len(self.names))
        self.rows.append((call.start, _PUSH, f"CALL r{call.rank} v{value}"))
        self.rows.append((call.end, _POP, f"CALL r{call.rank}"))

    def transfer(self, transfer: TracedMessage) -> None:
        """A link."""
        common = f"MESSAGE 0 {transfer.nbytes}"
        number = transfer.number
        self.rows.append((transfer.start, _START_LINK, f"{common} r{transfer.source} {number}"))
        self.rows.append((transfer.end, _END_LINK, f"{common} r{transfer.destination} {number}"))

    def end(self, ends: Sequence[float]) -> None:
        """Write everything, in the order of time."""
        write = self.output.write
        write(_HEADER)
        for name, value in self.names.items():
            write(f'3 v{value} CALL "{name}" "{_COLORS[value % len(_COLORS)]}"\n')
        hosts: dict[str, int] = {}
        for rank, host, *_ in self.places:
            number = hosts.get(host)
            if number is None:
                number = hosts[host] = len(hosts)
                write(f'4 0 h{number} HOST 0 "{host}"\n')
            write(f'4 0 r{rank} RANK h{number} "rank {rank}"\n')
        for rank, end in enumerate(ends):
            self.rows.append((end, _DESTROY, f"RANK r{rank}"))
        last = max(ends, default=0.0)
        # A call that begins and ends at one instant is pushed first: rows keep the order of the
        # calls of a rank.
        order = {_PUSH: 0, _POP: 0, _START_LINK: 0, _END_LINK: 1, _DESTROY: 2}
        self.rows.sort(key=lambda row: (row[0], order[row[1]]))
        codes = {_PUSH: 6, _POP: 7, _START_LINK: 8, _END_LINK: 9, _DESTROY: 5}
        for date, kind, text in self.rows:
            write(f"{codes[kind]} {date:.12f} {text}\n")
        for number in hosts.values():
            write(f"5 {last:.12f} HOST h{number}\n")

    def close(self) -> None:
        """Close the file."""
        self.output.close()
