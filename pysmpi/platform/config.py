"""SimGrid's option names, for `--cfg NAME:VALUE`, `<config>` and YAML's `config:`.

Options of smpirun's command lines are accepted. Those with a counterpart in pysmpi have an effect,
those that only control SimGrid's own implementation have none (see `simgrid_names.py`), and others
are refused by name. The parser of an option validates it: every value is read when the settings of
a run are made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pysmpi.errors import UsageError
from pysmpi.platform import config_values as read
from pysmpi.platform.simgrid_names import FOREIGN, OLD_SPELLINGS
from pysmpi.python.records import record
from pysmpi.text import did_you_mean


@record(frozen=True)
class Option:
    """One option: its default (SimGrid's, if SimGrid has one), its parser and a line of help.

    If the default is empty, the reader of the option decides.
    """

    name: str
    default: str
    help: str
    parse: Callable[[str], object] = read.words

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
        read.number,
    ),
    Option("network/rails", "", "most rails that hosts with several network cards use", read.whole),
    Option(
        "network/step-overhead",
        "",
        "time of a rank for each wait in a collective, with a measured preset (s, or 410ns)",
        read.duration,
    ),
    Option(
        "network/error",
        "",
        "errors of latencies, overheads and bandwidths (standard deviations): 0.1;0.1;0.05",
        read.errors,
    ),
    Option(
        "compute/error",
        "",
        "error of compute on the machine's cores (standard deviation), such as 0.1",
        read.number,
    ),
    Option(
        "network/latency-factor",
        "",
        "latency factor by size (bytes:factor;...)",
        read.latency_factors,
    ),
    Option(
        "network/bandwidth-factor",
        "",
        "bandwidth factor by size (bytes:factor;...)",
        read.bandwidth_factors,
    ),
    Option("smpi/lat-factor", "", "latency factor in model hybrid only", read.own_latency_factors),
    Option(
        "smpi/bw-factor", "", "bandwidth factor in model hybrid only", read.own_bandwidth_factors
    ),
    Option(
        "network/weight-S",
        "",
        "bytes that weigh a link's bandwidth in the round-trip penalty",
        read.number,
    ),
    Option("network/TCP-gamma", "", "largest TCP window (bytes); 0: no window", read.number),
    Option(
        "network/crosstraffic", "", "whether a flow takes 5 % of its way back (yes, no)", read.flag
    ),
    Option(
        "smpi/IB-penalty-factors",
        "0.965;0.925;1.35",
        "penalties in model ib: of receiving, of sending, of crowded receivers",
        read.penalties,
    ),
    Option(
        "network/loopback-bw",
        "10e9",
        "bandwidth of a host to itself (bytes/s, or 10GBps)",
        read.bandwidth,
    ),
    Option("network/loopback-lat", "", "latency of a host to itself (s, or 300ns)", read.duration),
    Option(
        "smpi/os", "0:0:0:0:0", "overhead of a blocking send (bytes:s:s/byte;...)", read.overheads
    ),
    Option(
        "smpi/ois",
        "0:0:0:0:0",
        "overhead of a non-blocking send (bytes:s:s/byte;...)",
        read.overheads,
    ),
    Option(
        "smpi/or",
        "0:0:0:0:0",
        "overhead of receiving a detached message (bytes:s:s/byte;...)",
        read.overheads,
    ),
    Option(
        "loggp/os", "", "overhead of a sender in LogP's family (bytes:s:s/byte;...)", read.overheads
    ),
    Option(
        "loggp/or",
        "",
        "overhead of a receiver in LogP's family (bytes:s:s/byte;...)",
        read.overheads,
    ),
    Option("loggp/L", "", "latency in LogP's family (s)", read.duration),
    Option("loggp/g", "", "gap between messages in LogP's family (s)", read.duration),
    Option("loggp/G", "", "gap per byte in LogP's family (s/byte)", read.duration),
    Option("logp/packet", "1500", "bytes of a packet in model logp", read.whole),
    Option(
        "loggps/g", "", "gap per byte of short messages in model loggps (s/byte)", read.duration
    ),
    Option("loggps/s", "", "size of short messages in model loggps (bytes)", read.size),
    Option("loggps/S", "", "size of synchronous messages in model loggps (bytes)", read.size),
    Option("plogp/g", "", "gap by size in model plogp (bytes:s:s/byte;...)", read.overheads),
    Option("lognp/o", "", "middleware overhead of one side (bytes:s:s/byte;...)", read.overheads),
    Option("lognp/o-node", "", "the same inside a node", read.overheads),
    Option("lognp/o-socket", "", "the same inside a socket", read.overheads),
    Option(
        "lognp/l",
        "",
        "middleware latency of one side, by stride (bytes:s/piece:s/byte;...)",
        read.overheads,
    ),
    Option("lognp/l-node", "", "the same inside a node", read.overheads),
    Option("lognp/l-socket", "", "the same inside a socket", read.overheads),
    Option(
        "lognp/f",
        "",
        "middleware latency of one side, by size and stride (bytes/stride:s;...), in place of "
        "lognp/l",
        read.stride_table,
    ),
    Option("lognp/f-node", "", "the same inside a node", read.stride_table),
    Option("lognp/f-socket", "", "the same inside a socket", read.stride_table),
    Option("lognp/net", "", "network overhead (bytes:s:s/byte;...)", read.overheads),
    Option(
        "smpi/async-small-thresh",
        "",
        "messages below (bytes) start before they are received",
        read.size,
    ),
    Option(
        "smpi/send-is-detached-thresh",
        "65536",
        "messages below (bytes) do not block senders",
        read.size,
    ),
    Option("smpi/coll-selector", "", "library whose choice of algorithms is used; see --selector"),
    Option("smpi/host-speed", "", "speed of this computer (flop/s), or auto", read.speed),
    Option(
        "smpi/simulate-computation",
        "yes",
        "whether compute takes simulated time (yes, no)",
        read.flag,
    ),
    Option(
        "smpi/cpu-threshold",
        "0",
        "compute shorter than this (s) is ignored; negative: all",
        read.threshold,
    ),
    Option("smpi/wtime", "1e-8", "cost of reading the clock (s)", read.duration),
    Option("smpi/test", "1e-4", "cost of Test and similar calls (s)", read.duration),
    Option("smpi/iprobe", "1e-4", "cost of Iprobe (s)", read.duration),
    Option(
        "smpi/matching",
        "arrival",
        "when wildcards can match messages: arrival, posted",
        read.matching,
    ),
    Option(
        "smpi/most-polls", "1000000", "failed tests in a row that end a run (0: never)", read.count
    ),
    Option(
        "smpi/grow-injected-times",
        "yes",
        "whether repeated failed tests cost more (yes, no)",
        read.flag,
    ),
    Option(
        "contexts/stack-size",
        "262144",
        "most bytes of the stack of a compiled program (KiB, or 64MiB)",
        read.stack_size,
    ),
    Option(
        "smpi/privatization",
        "copy",
        "data of compiled programs: copy (each rank its own), none, or libs NAME:NAME",
        read.privatization,
    ),
    Option(
        "smpi/privatize-libs",
        "",
        "libraries of compiled programs of which each rank has a copy, too (NAME;NAME)",
        read.libraries,
    ),
    Option("platform/most-hosts", "2000000", "largest number of hosts of a platform", read.whole),
    Option("platform/most-links", "4000000", "largest number of links of a platform", read.whole),
    Option("disk/scope", "machine", "machine (one shared file system) or host (a disk each)"),
    Option("disk/read-bandwidth", "1e9", "bandwidth of a disk for reading (bytes/s, or 1GBps)"),
    Option("disk/write-bandwidth", "1e9", "bandwidth of a disk for writing (bytes/s, or 1GBps)"),
    Option("disk/latency", "1e-4", "time before a disk begins to read or write (s, or 100us)"),
    Option(
        "memory/bandwidth",
        "",
        "bandwidth of a node's memory (bytes/s, or 200GBps) as STREAM prints it on all cores, "
        "which its ranks share; none: they do not",
        read.memory_bandwidth,
    ),
    Option(
        "memory/core-bandwidth",
        "12e9",
        "the same of one core alone, for compute that is bound by memory",
        read.bandwidth,
    ),
    Option(
        "memory/bound",
        "0",
        "part of a core's memory bandwidth that compute uses, 0 to 1; see --memory-bound",
        read.share,
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
        "memory/single-copy-start",
        "",
        "time for each message with cma, knem or xpmem",
        read.duration,
    ),
    Option(
        "memory/single-copy-page",
        "",
        "time for each page of 4 KiB with cma, knem or xpmem",
        read.duration,
    ),
    Option(
        "smpi/buffering",
        "infty",
        "zero: no message leaves before its receive; infty: as the thresholds say",
        read.buffering,
    ),
    Option(
        "smpi/barrier-collectives",
        "no",
        "whether rooted collectives and scans first wait for all ranks (yes, no)",
        read.flag,
    ),
    Option(
        "smpi/list-leaks",
        "0",
        "above 0: report objects that are not freed, as --check leaks",
        read.count,
    ),
    Option("tracing", "no", "whether to write a trace, as --trace (yes, no)", read.flag),
    Option("tracing/smpi", "no", "the same (yes, no)", read.flag),
    Option("tracing/filename", "simgrid.trace", "file of this trace"),
    Option("tracing/smpi/format", "Paje", "format of this trace: Paje or TI", read.trace_form),
    Option("smpi/init", "0", "time that MPI_Init takes (s)", read.duration),
    Option(
        "smpi/barrier-finalization", "no", "whether MPI_Finalize is a barrier (yes, no)", read.flag
    ),
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
            if name in OPTIONS and (text or OPTIONS[name].parse is not read.words)
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
            return read.number(text)
        except UsageError as error:
            raise UsageError(f"{name}: {error}") from None

    def flag(self, name: str, default: str | None = None) -> bool:
        """The value of an option that is yes or no."""
        return bool(self.value(name, default))
