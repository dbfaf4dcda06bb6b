"""Standard streams of a rank's own, for programs that redirect descriptors 1 and 2.

Ranks share the output streams of the process, so that their lines appear in the order of simulated
time. Text that a process has not flushed when it calls `os.dup2(f, 1)` goes to the new file. A rank
whose code names `dup2` therefore gets streams and buffers of its own, as a process has. They are
written when they are full, when the rank flushes them, and when it ends.
"""

from __future__ import annotations

import contextlib
import io
import sys
from types import CodeType
from typing import Any, TextIO

from pysmpi.isolation.assumptions import REDIRECTS
from pysmpi.isolation.exchange import Exchange
from pysmpi.isolation.kinds.rank_environment import RankEnvironment, here
from pysmpi.patching.patches import Patches

_STREAMS = {"stdout": 1, "stderr": 2}

# Of the run, see `OwnStreams`.
_current: list[OwnStreams] = []


class OwnStreams:
    """The streams of ranks whose code redirects descriptors."""

    def __init__(self, exchange: Exchange) -> None:
        self.exchange = exchange
        self.made: dict[RankEnvironment, list[Any]] = {}
        # Whether code redirects, by its address; the code is kept, so that its address is not
        # reused.
        self.known: dict[int, tuple[CodeType, bool]] = {}

    def give(self, code: CodeType) -> None:
        """Give the running rank its streams if it is about to execute code that redirects."""
        found = self.known.get(id(code))
        if found is None:
            found = self.known[id(code)] = code, redirects(code)
        if not found[1]:
            return
        environment = here()
        if environment is None or environment in self.made:
            return
        streams = self.made[environment] = []
        space = vars(sys)
        for name, fd in _STREAMS.items():
            shared = space[name]
            if not _is_plain(shared, fd):
                continue
            own = _like(shared, fd)
            streams.append(own)
            for each in (name, f"__{name}__"):
                if space[each] is shared:
                    space[each] = own

    def flush(self, environment: RankEnvironment) -> None:
        """Write the buffers of a rank to its descriptors."""
        streams = self.made.get(environment)
        if not streams:
            return
        shown = self.exchange.shown
        self.exchange.show(environment.state)
        try:
            for stream in streams:
                with contextlib.suppress(OSError, ValueError):
                    stream.flush()
        finally:
            self.exchange.show(shown)

    def close(self) -> None:
        """Let go of all streams, at the end of the run."""
        _current.remove(self)
        for environment in self.made:
            self.flush(environment)
        self.made.clear()


def all_streams() -> list[TextIO]:
    """The streams that ranks of the run have for themselves; their buffers are written first."""
    result: list[TextIO] = []
    for own in _current:
        for environment, streams in list(own.made.items()):
            own.flush(environment)
            result += streams
    return result


def redirects(code: CodeType) -> bool:
    """Whether code, or a function in it, names `dup2`."""
    return REDIRECTS in code.co_names or any(
        redirects(part) for part in code.co_consts if isinstance(part, CodeType)
    )


def _is_plain(stream: object, fd: int) -> bool:
    """Whether it is a stream as Python makes it at its start, with a buffer."""
    try:
        return (
            type(stream) is io.TextIOWrapper
            and type(stream.buffer) is io.BufferedWriter
            and type(stream.buffer.raw) is io.FileIO
            and stream.fileno() == fd
        )
    except (OSError, ValueError):
        return False


def _like(stream: Any, fd: int) -> object:
    """A stream with an empty buffer that writes to the same descriptor."""
    raw = io.FileIO(fd, "w", closefd=False)
    raw.name = stream.buffer.raw.name
    own: Any = io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=stream.encoding,
        errors=stream.errors,
        newline="\n",
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )
    own.mode = stream.mode
    return own


def install(patches: Patches, exchange: Exchange) -> OwnStreams:
    """Give streams to ranks until the patches are undone."""
    own = OwnStreams(exchange)
    _current.append(own)
    patches.call_back(own.close)
    return own
