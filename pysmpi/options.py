"""SimGrid's option names, for `--cfg NAME:VALUE`, `<config>` and YAML's `config:`.

A command line of smpirun carries over: options whose notion exists here act; those that only
steer SimGrid's own machinery are accepted and have no effect; others are refused by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from pysmpi.errors import UsageError


@dataclass(frozen=True)
class Option:
    """One option: its default (SimGrid's, where it has one) and a line of help."""

    name: str
    default: str
    help: str


_OPTIONS = [
    Option("network/model", "SMPI", "preset of factors: SMPI, LV08, CM02, raw"),
    Option("network/latency-factor", "", "latency factor by size (bytes:factor;...)"),
    Option("network/bandwidth-factor", "", "bandwidth factor by size (bytes:factor;...)"),
    Option("network/weight-S", "", "bytes that weigh a link's bandwidth in the round-trip penalty"),
    Option("network/TCP-gamma", "4194304", "largest TCP window (bytes); 0: no window"),
    Option("network/crosstraffic", "", "whether a flow takes 5 % of its way back (yes, no)"),
    Option("network/loopback-bw", "10e9", "bandwidth of a host to itself (bytes/s)"),
    Option("network/loopback-lat", "0", "latency of a host to itself (s)"),
    Option("smpi/os", "0:0:0:0:0", "overhead of a blocking send (bytes:s:s/byte;...)"),
    Option("smpi/ois", "0:0:0:0:0", "overhead of a non-blocking send (bytes:s:s/byte;...)"),
    Option("smpi/or", "0:0:0:0:0", "overhead of receiving a detached message (bytes:s:s/byte;...)"),
    Option("smpi/async-small-thresh", "0", "messages below (bytes) flow before they are received"),
    Option("smpi/send-is-detached-thresh", "65536", "messages below (bytes) let their sender go"),
    Option("smpi/coll-selector", "default", "library whose choice of algorithms is used"),
    Option("smpi/host-speed", "", "speed of this computer (flop/s), or auto"),
    Option("smpi/simulate-computation", "yes", "whether compute takes simulated time (yes, no)"),
    Option("smpi/cpu-threshold", "1e-6", "compute shorter than this (s) is dropped; negative: all"),
    Option("smpi/wtime", "1e-8", "cost of a look at the clock (s)"),
    Option("smpi/test", "1e-4", "cost of Test and its relatives (s)"),
    Option("smpi/iprobe", "1e-4", "cost of Iprobe (s)"),
    Option("smpi/grow-injected-times", "yes", "whether failed tests cost more and more (yes, no)"),
    Option("disk/scope", "machine", "whose disks there are: machine (one file system) or host"),
    Option("disk/read-bandwidth", "1e9", "bandwidth of a disk for reading (bytes/s, or 1GBps)"),
    Option("disk/write-bandwidth", "1e9", "bandwidth of a disk for writing (bytes/s, or 1GBps)"),
    Option("disk/latency", "1e-4", "time before a disk begins to read or write (s, or 100us)"),
    Option("memory/model", "", "model inside described nodes; see pysmpi models"),
    Option("memory/library", "ompi", "whose chunks and shared buffers: ompi or mpich"),
    Option("memory/chunk", "", "bytes of a shared buffer, or 32KiB"),
    Option("memory/first-chunk", "", "bytes of a message's first chunk; as the others"),
    Option("memory/eager", "", "messages up to (bytes, or 4KiB) are copied out at once"),
    Option("memory/cells", "", "number of shared buffers of a sender"),
    Option("memory/pool", "sender", "whose shared buffers: each sender's, or the pair's"),
    Option("memory/pool-order", "", "which buffer next: lifo (used last) or fifo (in turn)"),
    Option("memory/overhead", "250ns", "time of each side for a message inside a node"),
    Option("memory/chunk-overhead", "50ns", "time of each side for a chunk"),
    Option("memory/overlap", "", "part of a copy's loads and stores in parallel, 0 to 1"),
    Option("memory/first-send", "cached", "where a buffer is at its first send: cached, memory"),
    Option("memory/single-copy-start", "", "time of a message of cma, knem or xpmem"),
    Option("memory/single-copy-page", "", "time of a page of 4 KiB of cma, knem or xpmem"),
    Option("smpi/init", "0", "time that MPI_Init takes (s)"),
    Option("smpi/barrier-finalization", "no", "whether MPI_Finalize is a barrier (yes, no)"),
]

OPTIONS = {option.name: option for option in _OPTIONS}

ALIASES = {
    "smpi/lat-factor": "network/latency-factor",
    "smpi/bw-factor": "network/bandwidth-factor",
    "smpi/finalization-barrier": "smpi/barrier-finalization",
    "smpi/running-power": "smpi/host-speed",
    "smpi/running_power": "smpi/host-speed",
    "smpi/async_small_thres": "smpi/async-small-thresh",
    "smpi/async_small_thresh": "smpi/async-small-thresh",
    "smpi/send_is_detached_thres": "smpi/send-is-detached-thresh",
    "smpi/send_is_detached_thresh": "smpi/send-is-detached-thresh",
    "network/TCP_gamma": "network/TCP-gamma",
    "network/weight_S": "network/weight-S",
    "network/latency_factor": "network/latency-factor",
    "network/bandwidth_factor": "network/bandwidth-factor",
    "smpi/coll_selector": "smpi/coll-selector",
    "smpi/cpu_threshold": "smpi/cpu-threshold",
    "smpi/simulate_computation": "smpi/simulate-computation",
}

COLLECTIVES = frozenset(
    "barrier bcast reduce allreduce gather gatherv scatter scatterv allgather allgatherv alltoall"
    " alltoallv alltoallw reduce_scatter reduce_scatter_block scan exscan".split()
)

# Options that steer SimGrid's own machinery: threads, privatization, solvers, tracing, checking.
WITHOUT_EFFECT = frozenset(
    "contexts/factory contexts/guard-size contexts/nthreads contexts/stack-size"
    " contexts/synchro cpu/maxmin-selective-update cpu/optim cpu/solver cpu/model host/model"
    " network/optim network/maxmin-selective-update network/solver maxmin/precision"
    " maxmin/concurrency-limit precision/timing precision/work-amount surf/precision"
    " debug/breakpoint debug/verbose-exit debug/clean-atexit exception/cutpath"
    " smpi/display-timing smpi/display-allocs smpi/list-leaks smpi/keep-temps smpi/privatization"
    " smpi/privatize-libs smpi/pedantic smpi/errors-are-fatal smpi/papi-events smpi/buffering"
    " smpi/trace-call-location smpi/trace-call-use-absolute-path smpi/tmpdir"
    " smpi/iprobe-cpu-usage smpi/comp-adjustment-file smpi/barrier-collectives"
    " smpi/shared-malloc smpi/shared-malloc-blocksize smpi/shared-malloc-hugepage"
    " smpi/auto-shared-malloc-thresh tracing tracing/smpi tracing/filename tracing/smpi/computing"
    " tracing/smpi/internals tracing/smpi/format path storage/model disk/model".split()
)


def canonical(name: str, where: str) -> str:
    """The name of an option; UsageError, which begins with `where`, if there is none."""
    name = name.strip()
    name = ALIASES.get(name, name)
    family, _, rest = name.partition("/")
    if name in OPTIONS or name in WITHOUT_EFFECT or (family == "smpi" and rest in COLLECTIVES):
        return name
    close = get_close_matches(name, [*OPTIONS, *ALIASES, *WITHOUT_EFFECT], 1)
    hint = f"; did you mean {close[0]}?" if close else "; see pysmpi run --help-cfg"
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


class Settings:
    """The options of one run: what was said, over SimGrid's defaults."""

    def __init__(self, *layers: Mapping[str, str]) -> None:
        self.said: dict[str, str] = {}
        for layer in layers:
            for name, value in layer.items():
                self.said[canonical(name, "config")] = value

    def text(self, name: str, default: str | None = None) -> str:
        """The value of an option as it was written."""
        value = self.said.get(name)
        if value is not None:
            return value
        return OPTIONS[name].default if default is None else default

    def number(self, name: str) -> float:
        """The value of an option that is a plain number (s, bytes or flop/s)."""
        text = self.text(name)
        try:
            return float(text)
        except ValueError:
            raise UsageError(f"{name}: expected a number, found {text!r}") from None

    def flag(self, name: str, default: str | None = None) -> bool:
        """The value of an option that is yes or no."""
        text = self.text(name, default).lower()
        if text in ("yes", "on", "true", "1"):
            return True
        if text in ("no", "off", "false", "0"):
            return False
        raise UsageError(f"{name}: expected yes or no, found {text!r}")
