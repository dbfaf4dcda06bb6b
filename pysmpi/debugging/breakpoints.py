"""Breakpoints at MPI calls: `rank=3,call=Recv,count=5`."""

from __future__ import annotations

from dataclasses import dataclass

from pysmpi.errors import UsageError
from pysmpi.mpi.calls import PROCEDURES, MpiCall
from pysmpi.text import whole

_KEYS = ("rank", "call", "count")
_FORM = "rank=RANK,call=NAME,count=N, all of them optional"


@dataclass
class Breakpoint:
    """Stops before the `count`-th call (from 1) of a name in a rank; None stands for any."""

    rank: int | None = None
    call: str | None = None
    count: int = 1
    seen: int = 0

    def hit(self, call: MpiCall) -> bool:
        """Count a call that begins; return whether to stop before it."""
        if self.rank is not None and call.rank.pid != self.rank:
            return False
        if self.call is not None and call.name != self.call:
            return False
        self.seen += 1
        return self.seen == self.count


def parse_breakpoint(text: str) -> Breakpoint:
    """The breakpoint that the value of `--break` describes; raises UsageError."""
    found: dict[str, str] = {}
    for part in text.split(","):
        key, sign, value = (word.strip() for word in part.partition("="))
        if not sign or key not in _KEYS or key in found or not value:
            raise UsageError(f"--break {text}: expected {_FORM}, got {part!r}")
        found[key] = value
    for key in ("rank", "count"):
        if key in found and whole(found[key]) is None:
            raise UsageError(f"--break {text}: {key}: expected a number, got {found[key]!r}")
    names = {procedure.name for procedure in PROCEDURES}
    name = found.get("call")
    if name is not None and name not in names:
        known = {other.casefold(): other for other in sorted(names)}
        close = known.get(name.casefold())
        more = f"; did you mean {close}?" if close else ""
        raise UsageError(f"--break {text}: no such MPI call {name!r}{more}")
    count = int(found.get("count", "1"))
    if count < 1:
        raise UsageError(f"--break {text}: count: expected at least 1, got 0")
    return Breakpoint(int(found["rank"]) if "rank" in found else None, name, count)
