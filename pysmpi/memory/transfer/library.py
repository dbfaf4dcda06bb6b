"""The behaviour of MPI libraries inside a node: chunks, shared buffers, overheads.

The presets are the libraries of Putigny, Ruelle and Goglin (PDSEC 2014). Open MPI copies in
fragments of 32 KiB from a free list, the last used first. MPICH2 has 64 cells of 64 KiB for each
process and uses them round robin. Both have one set of buffers for each sender.
"""

from __future__ import annotations

from pysmpi.errors import UsageError
from pysmpi.platform.config import Settings
from pysmpi.platform.units import parse_size, parse_time
from pysmpi.python.records import record


@record(frozen=True)
class Library:
    """Sizes in bytes, overheads in seconds.

    Messages of up to `eager` bytes are copied to shared buffers at once and copied from them when
    they are received. Larger messages begin when both sides are ready, in chunks of `chunk` bytes
    after one of `first`. The `cells` buffers of `chunk` bytes are used the last one first, or round
    robin if `in_turn`. They belong to the sender or, if `paired`, to the pair of cores and so to
    both directions. `overhead` is the time of each side for a message, `control` for a chunk.
    `overlap` replaces that of the node, if it is not None. A new send buffer is in the cache if
    `warm`. `stores` says how a sender writes to shared buffers (one of `STORES`): with "flush" it
    flushes the lines afterwards, with "non-temporal" it writes past its caches and waits for
    `drain` seconds after each chunk. A receiver flushes its copies of shared buffers if `released`.
    """

    chunk: int
    first: int
    eager: int
    cells: int
    in_turn: bool
    paired: bool
    overhead: float
    control: float
    overlap: float | None
    warm: bool
    stores: str = "cached"
    drain: float = 0.0
    released: bool = False


STORES = ("cached", "flush", "non-temporal")

# chunk, eager, cells, order
_PRESETS = {
    "ompi": ("32KiB", "4KiB", "8", "lifo"),
    "mpich": ("64KiB", "64KiB", "64", "fifo"),
}


def read_library(settings: Settings) -> Library:
    """The library that the options `memory/...` describe. Raises UsageError."""
    preset = _choice(settings, "memory/library", tuple(_PRESETS))
    chunk_text, eager_text, cells_text, order = _PRESETS[preset]
    chunk = _size(settings, "memory/chunk", chunk_text)
    first = _size(settings, "memory/first-chunk", f"{chunk}B")
    cells = settings.text("memory/cells") or cells_text
    if not (cells.isascii() and cells.isdecimal()) or not 0 < int(cells) <= 1 << 20:
        raise UsageError(f"memory/cells: expected a whole number above 0, got {cells!r}")
    if first > chunk:
        raise UsageError(
            f"memory/first-chunk ({first} bytes) must not be above memory/chunk ({chunk} bytes)"
        )
    return Library(
        chunk,
        first,
        _size(settings, "memory/eager", eager_text, zero=True),
        int(cells),
        _choice(settings, "memory/pool-order", ("lifo", "fifo"), order) == "fifo",
        _choice(settings, "memory/pool", ("sender", "pair")) == "pair",
        seconds(settings, "memory/overhead"),
        seconds(settings, "memory/chunk-overhead"),
        _overlap(settings),
        _choice(settings, "memory/first-send", ("cached", "memory")) == "cached",
        _choice(settings, "memory/stores", STORES),
        seconds(settings, "memory/drain"),
        _choice(settings, "memory/release", ("keep", "flush")) == "flush",
    )


def seconds(settings: Settings, name: str, default: str | None = None) -> float:
    """The value of an option that is a time. Raises UsageError."""
    text = settings.text(name) or default or "0"
    try:
        return parse_time(text, bare=True)
    except UsageError as error:
        raise UsageError(f"{name}: {error}") from None


def _size(settings: Settings, name: str, default: str, zero: bool = False) -> int:
    text = settings.text(name) or default
    try:
        value = parse_size(text, bare=True)
    except UsageError as error:
        raise UsageError(f"{name}: {error}") from None
    if value == 0 and not zero:
        raise UsageError(f"{name}: expected a size above 0, got {text!r}")
    return value


def _choice(
    settings: Settings, name: str, choices: tuple[str, ...], default: str | None = None
) -> str:
    text = settings.text(name) or default or choices[0]
    if text not in choices:
        raise UsageError(f"{name}: expected one of {', '.join(choices)}, got {text!r}")
    return text


def _overlap(settings: Settings) -> float | None:
    text = settings.text("memory/overlap")
    if not text:
        return None
    value = settings.number("memory/overlap")
    if not 0.0 <= value <= 1.0:
        raise UsageError(f"memory/overlap: expected a number from 0 to 1, got {text!r}")
    return value
