"""SimGrid's option names, for `--cfg NAME:VALUE`, `<config>` and YAML's `config:`.

Options of smpirun's command lines are accepted. Those with a counterpart in pysmpi have an effect,
those that only control SimGrid's own implementation have none (see `simgrid_names.py`), and others
are refused by name. The parser of an option validates it: every value is read when the settings of
a run are made.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pysmpi.errors import UsageError
from pysmpi.platform.numbers import read_count
from pysmpi.platform.piecewise import Piecewise
from pysmpi.platform.piecewise import parse as parse_segments
from pysmpi.platform.simgrid_names import FOREIGN, OLD_SPELLINGS
from pysmpi.platform.units import MOST, parse_bandwidth, parse_size, parse_speed, parse_time
from pysmpi.python.records import record
from pysmpi.text import did_you_mean

# Parsers: the text of an option to its value; a UsageError has the expected and the found value.


def number(text: str) -> float:
    """A number from 0 to 1e100: its products are numbers, too."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0.0 <= value <= MOST:
        raise UsageError(f"expected a number from 0 to 1e100, got {text!r}")
    return value


def count(text: str) -> int:
    """A whole number that is not negative."""
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise UsageError(f"expected a whole number that is not negative, got {text!r}")
    return int(text)


def whole(text: str) -> int:
    """A whole number above 0."""
    return read_count(text)


def penalties(text: str) -> tuple[float, float, float]:
    """Three positive numbers between semicolons."""
    try:
        found = one, two, three = tuple(float(part) for part in text.split(";"))
        if all(0.0 < one <= MOST for one in found):
            return one, two, three
    except ValueError:
        pass
    raise UsageError(f"expected three positive numbers such as 0.965;0.925;1.35, got {text!r}")


def matching(text: str) -> str:
    """The time at which wildcards see messages."""
    if text not in ("arrival", "posted"):
        raise UsageError(f"expected arrival or posted, got {text!r}")
    return text


def duration(text: str) -> float:
    """Seconds: a plain number, or with a unit (`10us`)."""
    try:
        return parse_time(text, bare=True)
    except UsageError:
        raise UsageError(
            f"expected a number of seconds, not negative, or a time such as 10us, got {text!r}"
        ) from None


def buffering(text: str) -> str:
    """Whether messages are buffered."""
    if text not in ("zero", "infty"):
        raise UsageError(f"expected zero or infty, got {text!r}")
    return text


def trace_form(text: str) -> str:
    """The suffix of a format of traces."""
    if text.lower() not in ("paje", "ti"):
        raise UsageError(f"expected Paje or TI, got {text!r}")
    return text.lower()


def threshold(text: str) -> float:
    """A duration; a negative number means all durations, and gives infinity."""
    if text.strip().startswith("-"):
        duration(text.strip()[1:])
        return math.inf
    return duration(text)


def size(text: str) -> float:
    """Bytes: a plain number, or with a unit (`64KiB`)."""
    try:
        return float(parse_size(text, bare=True))
    except UsageError:
        raise UsageError(
            "expected bytes, a whole number that is not negative or a size such as 64KiB, got "
            f"{text!r}"
        ) from None


def bandwidth(text: str) -> float:
    """Bytes a second above 0: a plain number, or with a unit (`10Gbps`)."""
    try:
        value = parse_bandwidth(text, bare=True)
    except UsageError:
        value = 0.0
    if value == 0.0:
        raise UsageError(f"expected a bandwidth above 0, such as 10Gbps, got {text!r}")
    return value


def memory_bandwidth(text: str) -> float:
    """Bytes a second above 0; infinity for `none`."""
    return math.inf if text.strip() == "none" else bandwidth(text)


def share(text: str) -> float:
    """A number from 0 to 1."""
    value = number(text)
    if value > 1.0:
        raise UsageError(f"expected a number from 0 to 1, got {text!r}")
    return value


def speed(text: str) -> float | None:
    """Flop/s above 0, a plain number or with a unit (`8Gf`); None for `auto`."""
    if text.strip() == "auto":
        return None
    try:
        value = parse_speed(text, bare=True)
    except UsageError:
        value = 0.0
    if value == 0.0:
        raise UsageError(f"expected a speed above 0, such as 8Gf, or auto, got {text!r}")
    return value


def flag(text: str) -> bool:
    """Yes or no, as SimGrid spells them."""
    lowered = text.lower()
    if lowered in ("yes", "on", "true", "1"):
        return True
    if lowered in ("no", "off", "false", "0"):
        return False
    raise UsageError(f"expected yes or no, got {text!r}")


def stack_size(text: str) -> int:
    """Bytes of a stack: a number of KiB, as SimGrid has it, or a size with a unit (`64MiB`)."""
    value = int(text) * 1024 if text.isascii() and text.isdigit() else int(size(text))
    if not 1 << 10 <= value <= 1 << 40:
        raise UsageError(f"expected 1 KiB to 1 TiB, a number of KiB or a size, got {text!r}")
    return value


def privatization(text: str) -> tuple[str, tuple[str, ...]]:
    """The files of which each rank of a program has a copy: "copy" or "none", and libraries."""
    lowered = text.lower()
    if lowered in ("copy", "yes", "on", "true", "1", "dlopen", "mmap"):
        return "copy", ()
    if lowered in ("none", "no", "off", "false", "0"):
        return "none", ()
    first, _, names = text.strip().partition(" ")
    if first == "libs" and names.strip():
        return "copy", libraries(names.replace(":", ";"))
    raise UsageError(f"expected copy, none, or 'libs NAME:NAME', got {text!r}")


def libraries(text: str) -> tuple[str, ...]:
    """Names or paths of shared libraries between semicolons."""
    return tuple(part.strip() for part in text.split(";") if part.strip())


def words(text: str) -> str:
    """A text that its reader checks: a name, or a value that a library of options allows."""
    return text


@record(frozen=True)
class Segments:
    """Reads values by size, `bytes:value;...`: a `Piecewise`. See `pysmpi.platform.piecewise`."""

    below: float | None = None  # at and below the first bound; None: the first segment's values
    zero: bool = True  # whether a value may be 0
    empty: str = ""  # what no segments mean, if they may be missing

    def __call__(self, text: str) -> Piecewise:
        text = text.strip() or self.empty
        if not text:
            raise UsageError("expected a number or segments (bytes:value;...), got an empty text")
        found = parse_segments(text, "", self.below)
        if not self.zero and any(values[0] == 0.0 for values in found.values):
            raise UsageError("a factor of 0 would keep messages from ever arriving")
        return found


# SimGrid's options smpi/... may be empty.
overheads = Segments(empty="0:0:0")
latency_factors = Segments(1.0)
bandwidth_factors = Segments(1.0, zero=False)
own_latency_factors = Segments(1.0, empty="0:1")
own_bandwidth_factors = Segments(1.0, zero=False, empty="0:1")


@record(frozen=True)
class Option:
    """One option: its default (SimGrid's, if SimGrid has one), its parser and a line of help.

    If the default is empty, the reader of the option decides.
    """

    name: str
    default: str
    help: str
    parse: Callable[[str], object] = words

    def value(self, text: str) -> Any:
        """The value of a text; the message of a UsageError begins with the option's name."""
        try:
            return self.parse(text)
        except UsageError as error:
            raise UsageError(f"{self.name}: {str(error).removeprefix(': ')}") from None


_OPTIONS = [  # fmt: skip
    Option(
        "network/model", "", "model by SimGrid's name: SMPI (hybrid), LV08, CM02, IB, raw (fluid)"
    ),
    Option(
        "network/preset",
        "",
        "factors of model hybrid: neutral, smpi (SimGrid's files), or a network's",
    ),
    Option(
        "network/message-rate",
        "",
        "messages of a byte that a rank sends a second (osu_mbw_mr), with a measured preset",
        number,
    ),
    Option(
        "network/latency-factor", "", "latency factor by size (bytes:factor;...)", latency_factors
    ),
    Option(
        "network/bandwidth-factor",
        "",
        "bandwidth factor by size (bytes:factor;...)",
        bandwidth_factors,
    ),
    Option("smpi/lat-factor", "", "latency factor in model hybrid only", own_latency_factors),
    Option("smpi/bw-factor", "", "bandwidth factor in model hybrid only", own_bandwidth_factors),
    Option(
        "network/weight-S",
        "",
        "bytes that weigh a link's bandwidth in the round-trip penalty",
        number,
    ),
    Option("network/TCP-gamma", "", "largest TCP window (bytes); 0: no window", number),
    Option("network/crosstraffic", "", "whether a flow takes 5 % of its way back (yes, no)", flag),
    Option(
        "smpi/IB-penalty-factors",
        "0.965;0.925;1.35",
        "penalties in model ib: of receiving, of sending, of crowded receivers",
        penalties,
    ),
    Option(
        "network/loopback-bw",
        "10e9",
        "bandwidth of a host to itself (bytes/s, or 10GBps)",
        bandwidth,
    ),
    Option("network/loopback-lat", "", "latency of a host to itself (s, or 300ns)", duration),
    Option("smpi/os", "0:0:0:0:0", "overhead of a blocking send (bytes:s:s/byte;...)", overheads),
    Option(
        "smpi/ois", "0:0:0:0:0", "overhead of a non-blocking send (bytes:s:s/byte;...)", overheads
    ),
    Option(
        "smpi/or",
        "0:0:0:0:0",
        "overhead of receiving a detached message (bytes:s:s/byte;...)",
        overheads,
    ),
    Option("loggp/os", "", "overhead of a sender in LogP's family (bytes:s:s/byte;...)", overheads),
    Option(
        "loggp/or", "", "overhead of a receiver in LogP's family (bytes:s:s/byte;...)", overheads
    ),
    Option("loggp/L", "", "latency in LogP's family (s)", duration),
    Option("loggp/g", "", "gap between messages in LogP's family (s)", duration),
    Option("loggp/G", "", "gap per byte in LogP's family (s/byte)", duration),
    Option("logp/packet", "1500", "bytes of a packet in model logp", whole),
    Option("loggps/g", "", "gap per byte of short messages in model loggps (s/byte)", duration),
    Option("loggps/s", "", "size of short messages in model loggps (bytes)", size),
    Option("loggps/S", "", "size of synchronous messages in model loggps (bytes)", size),
    Option("plogp/g", "", "gap by size in model plogp (bytes:s:s/byte;...)", overheads),
    Option("lognp/o", "", "middleware overhead of one side (bytes:s:s/byte;...)", overheads),
    Option("lognp/o-node", "", "the same inside a node", overheads),
    Option("lognp/o-socket", "", "the same inside a socket", overheads),
    Option(
        "lognp/l",
        "",
        "middleware latency of one side, by stride (bytes:s/piece:s/byte;...)",
        overheads,
    ),
    Option("lognp/l-node", "", "the same inside a node", overheads),
    Option("lognp/l-socket", "", "the same inside a socket", overheads),
    Option("lognp/net", "", "network overhead (bytes:s:s/byte;...)", overheads),
    Option(
        "smpi/async-small-thresh", "", "messages below (bytes) start before they are received", size
    ),
    Option(
        "smpi/send-is-detached-thresh", "65536", "messages below (bytes) do not block senders", size
    ),
    Option("smpi/coll-selector", "", "library whose choice of algorithms is used; see --selector"),
    Option("smpi/host-speed", "", "speed of this computer (flop/s), or auto", speed),
    Option(
        "smpi/simulate-computation", "yes", "whether compute takes simulated time (yes, no)", flag
    ),
    Option(
        "smpi/cpu-threshold",
        "0",
        "compute shorter than this (s) is ignored; negative: all",
        threshold,
    ),
    Option("smpi/wtime", "1e-8", "cost of reading the clock (s)", duration),
    Option("smpi/test", "1e-4", "cost of Test and similar calls (s)", duration),
    Option("smpi/iprobe", "1e-4", "cost of Iprobe (s)", duration),
    Option(
        "smpi/matching", "arrival", "when wildcards can match messages: arrival, posted", matching
    ),
    Option("smpi/most-polls", "1000000", "failed tests in a row that end a run (0: never)", count),
    Option(
        "smpi/grow-injected-times", "yes", "whether repeated failed tests cost more (yes, no)", flag
    ),
    Option(
        "contexts/stack-size",
        "262144",
        "most bytes of the stack of a compiled program (KiB, or 64MiB)",
        stack_size,
    ),
    Option(
        "smpi/privatization",
        "copy",
        "data of compiled programs: copy (each rank its own), none, or libs NAME:NAME",
        privatization,
    ),
    Option(
        "smpi/privatize-libs",
        "",
        "libraries of compiled programs of which each rank has a copy, too (NAME;NAME)",
        libraries,
    ),
    Option("platform/most-hosts", "2000000", "largest number of hosts of a platform", whole),
    Option("platform/most-links", "4000000", "largest number of links of a platform", whole),
    Option("disk/scope", "machine", "machine (one shared file system) or host (a disk each)"),
    Option("disk/read-bandwidth", "1e9", "bandwidth of a disk for reading (bytes/s, or 1GBps)"),
    Option("disk/write-bandwidth", "1e9", "bandwidth of a disk for writing (bytes/s, or 1GBps)"),
    Option("disk/latency", "1e-4", "time before a disk begins to read or write (s, or 100us)"),
    Option(
        "memory/bandwidth",
        "",
        "bandwidth of a node's memory (bytes/s, or 200GBps) as STREAM prints it on all cores, "
        "which its ranks share; none: they do not",
        memory_bandwidth,
    ),
    Option(
        "memory/core-bandwidth",
        "12e9",
        "the same of one core alone, for compute that is bound by memory",
        bandwidth,
    ),
    Option(
        "memory/bound",
        "0",
        "part of a core's memory bandwidth that compute uses, 0 to 1; see --memory-bound",
        share,
    ),
    Option("memory/model", "", "model inside described nodes; see pysmpi models"),
    Option("memory/protocol", "", "coherence protocol of nodes, instead of their own"),
    Option("memory/primitive", "sr1", "send and receive of model fame: sr1, sr2, or a file"),
    Option("memory/line-state", "E", "state of the buffers of model lines: E or I (memory)"),
    Option("memory/library", "ompi", "library whose defaults are used: ompi or mpich"),
    Option("memory/chunk", "", "bytes of a shared buffer, or 32KiB"),
    Option("memory/first-chunk", "", "bytes of a message's first chunk; default: as the others"),
    Option("memory/eager", "", "messages up to (bytes, or 4KiB) are copied out at once"),
    Option("memory/cells", "", "number of shared buffers of a sender"),
    Option("memory/pool", "sender", "owner of shared buffers: sender, or pair"),
    Option("memory/pool-order", "", "order of buffers: lifo (last used first) or fifo"),
    Option("memory/overhead", "250ns", "time of each side for a message inside a node"),
    Option("memory/chunk-overhead", "50ns", "time of each side for a chunk"),
    Option("memory/overlap", "", "part of a copy's loads and stores in parallel, 0 to 1"),
    Option("memory/first-send", "cached", "place of a buffer at its first send: cached, memory"),
    Option("memory/stores", "cached", "stores to shared buffers: cached, flush, non-temporal"),
    Option("memory/drain", "0s", "wait after the non-temporal stores of a chunk"),
    Option("memory/release", "keep", "a receiver's copies of shared buffers: keep, flush"),
    Option(
        "memory/single-copy-start", "", "time for each message with cma, knem or xpmem", duration
    ),
    Option(
        "memory/single-copy-page",
        "",
        "time for each page of 4 KiB with cma, knem or xpmem",
        duration,
    ),
    Option(
        "smpi/buffering",
        "infty",
        "zero: no message leaves before its receive; infty: as the thresholds say",
        buffering,
    ),
    Option(
        "smpi/barrier-collectives",
        "no",
        "whether rooted collectives and scans first wait for all ranks (yes, no)",
        flag,
    ),
    Option(
        "smpi/list-leaks",
        "0",
        "above 0: report objects that are not freed, as --check leaks",
        count,
    ),
    Option("tracing", "no", "whether to write a trace, as --trace (yes, no)", flag),
    Option("tracing/smpi", "no", "the same (yes, no)", flag),
    Option("tracing/filename", "simgrid.trace", "file of this trace"),
    Option("tracing/smpi/format", "Paje", "format of this trace: Paje or TI", trace_form),
    Option("smpi/init", "0", "time that MPI_Init takes (s)", duration),
    Option("smpi/barrier-finalization", "no", "whether MPI_Finalize is a barrier (yes, no)", flag),
]

OPTIONS = {option.name: option for option in _OPTIONS}

COLLECTIVES = frozenset(
    "barrier bcast reduce allreduce gather gatherv scatter scatterv allgather allgatherv alltoall"
    " alltoallv alltoallw reduce_scatter reduce_scatter_block scan exscan".split()
)


def canonical(name: str, where: str) -> str:
    """The name of an option; raise UsageError, whose text begins with `where`, if unknown."""
    name = name.strip()
    name = OLD_SPELLINGS.get(name, name)
    family, _, rest = name.partition("/")
    if name in OPTIONS or name in FOREIGN or (family == "smpi" and rest in COLLECTIVES):
        return name
    hint = did_you_mean(name, [*OPTIONS, *OLD_SPELLINGS, *FOREIGN])
    hint = hint or "; see pysmpi run --help-cfg"
    raise UsageError(f"{where}: unknown option {name!r}{hint}")


def parse(settings: Iterable[str]) -> dict[str, str]:
    """Read `NAME:VALUE` (or `NAME=VALUE`) settings of a command line."""
    found: dict[str, str] = {}
    for setting in settings:
        colon, equals = setting.find(":"), setting.find("=")
        ends = [i for i in (colon, equals) if i > 0]
        if not ends:
            raise UsageError(f"--cfg {setting}: expected NAME:VALUE, such as smpi/os:0:1e-6:0")
        name = canonical(setting[: min(ends)], f"--cfg {setting}")
        found[name] = setting[min(ends) + 1 :].strip()
    return found


# The factors of model hybrid alone, and of all models: the last setting of a pair applies.
RIVALS = {
    "smpi/lat-factor": "network/latency-factor",
    "smpi/bw-factor": "network/bandwidth-factor",
}


# Those that act on compiled programs alone.
OF_COMPILED_PROGRAMS = ("contexts/stack-size", "smpi/privatization", "smpi/privatize-libs")

# The sizes below which messages are buffered.
THRESHOLDS = ("smpi/async-small-thresh", "smpi/send-is-detached-thresh")


class Settings:
    """The options of one run: settings over defaults.

    `said` has the texts by name, those of later layers in place of earlier ones. Every value is
    read once, here; UsageError names an option that is unknown, or whose value is wrong.
    """

    def __init__(self, *layers: Mapping[str, str]) -> None:
        self.said: dict[str, str] = {}
        self.unheard: list[str] = []  # options that were set where they do not act
        for layer in layers:
            known = {canonical(name, "config"): value for name, value in layer.items()}
            for one, other in RIVALS.items():
                if one in known:
                    self.said.pop(other, None)
                elif other in known:
                    self.said.pop(one, None)
            self.said.update(known)
            if known.get("smpi/buffering") == "zero":
                self.said.update(dict.fromkeys(THRESHOLDS, "0"))
        for name, text in self.said.items():
            if name in FOREIGN:
                FOREIGN[name].check(text)
        self._values: dict[str, object] = {
            name: OPTIONS[name].value(text)
            for name, text in self.said.items()
            if name in OPTIONS and (text or OPTIONS[name].parse is not words)
        }

    @property
    def foreign(self) -> list[str]:
        """The options of SimGrid that were set and have no effect."""
        return sorted({name for name in self.said if name in FOREIGN} | {*self.unheard})

    def value(self, name: str, default: object = None) -> Any:
        """The value of an option as its parser gives it.

        `default` replaces the value of an option that is not set and has no default of its own.
        """
        if name in self._values:
            return self._values[name]
        option = OPTIONS[name]
        if option.default and default is None:
            return option.value(option.default)
        return option.value(default) if isinstance(default, str) else default

    def text(self, name: str, default: str | None = None) -> str:
        """The value of an option as it was written."""
        value = self.said.get(name)
        if value is not None:
            return value
        return OPTIONS[name].default if default is None else default

    def number(self, name: str, default: float | None = None) -> float:
        """The value of an option that is a number (s, bytes or flop/s)."""
        value = self.value(name, default)
        if isinstance(value, str):
            value = self._plain(name, value)
        return float(value)

    def _plain(self, name: str, text: str) -> float:
        try:
            return number(text)
        except UsageError as error:
            raise UsageError(f"{name}: {error}") from None

    def flag(self, name: str, default: str | None = None) -> bool:
        """The value of an option that is yes or no."""
        return bool(self.value(name, default))
