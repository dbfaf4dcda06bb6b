"""SimGrid's options that are not options of pysmpi: what does the same, or why they do nothing.

The names are those of SimGrid 3.32 to 4.1 and their older spellings. A row without harmless values
takes any value. A value that would change times or outputs in SimGrid, and does not here, is
refused by a message that names what does the same. Source: SimGrid's sources and documentation.
"""

from __future__ import annotations

from pysmpi.errors import UsageError
from pysmpi.python.records import record

OLD_SPELLINGS = {
    "contexts/guard_size": "contexts/guard-size",
    "contexts/parallel_threshold": "contexts/parallel-threshold",
    "contexts/stack_size": "contexts/stack-size",
    "cpu/maxmin_selective_update": "cpu/maxmin-selective-update",
    "model-check/soft-timeout": "model-check/timeout-soft",
    "network/TCP_gamma": "network/TCP-gamma",
    "network/bandwidth_factor": "network/bandwidth-factor",
    "network/latency_factor": "network/latency-factor",
    "network/maxmin_selective_update": "network/maxmin-selective-update",
    "network/weight_S": "network/weight-S",
    "ns3/TcpModel": "ns3/NetworkModel",
    "precision/bmf": "bmf/precision",
    "smpi/IB_penalty_factors": "smpi/IB-penalty-factors",
    "smpi/async_small_thres": "smpi/async-small-thresh",
    "smpi/async_small_thresh": "smpi/async-small-thresh",
    "smpi/bw_factor": "smpi/bw-factor",
    "smpi/coll_selector": "smpi/coll-selector",
    "smpi/cpu_threshold": "smpi/cpu-threshold",
    "smpi/display_timing": "smpi/display-timing",
    "smpi/finalization-barrier": "smpi/barrier-finalization",
    "smpi/lat_factor": "smpi/lat-factor",
    "smpi/privatize-global-variables": "smpi/privatization",
    "smpi/privatize_global_variables": "smpi/privatization",
    "smpi/reduce-scatter": "smpi/reduce_scatter",
    "smpi/running-power": "smpi/host-speed",
    "smpi/running_power": "smpi/host-speed",
    "smpi/send_is_detached_thres": "smpi/send-is-detached-thresh",
    "smpi/send_is_detached_thresh": "smpi/send-is-detached-thresh",
    "smpi/simulate_computation": "smpi/simulate-computation",
    "smpi/use-shared-malloc": "smpi/shared-malloc",
    "smpi/use_shared_malloc": "smpi/shared-malloc",
    "surf/precision": "precision/timing",
    "maxmin/precision": "precision/work-amount",
}

NO = ("no", "off", "false", "0")


@record(frozen=True)
class Foreign:
    """One option: a remark; the values that change nothing (None: all); who does the same."""

    name: str
    remark: str
    harmless: tuple[str, ...] | None = None
    instead: str = ""

    def line(self) -> str:
        """One line about it."""
        if self.harmless is None:
            return self.remark
        values = ", ".join(one for one in self.harmless if one)
        if not values:
            return f"refused: {self.instead}" if not self.remark else (
                f"{self.remark}; values are refused: {self.instead}"
            )  # fmt: skip
        return f"{self.remark}; values but {values} are refused: {self.instead}"

    def check(self, value: str) -> None:
        """Refuse a value that would have an effect in SimGrid."""
        text = value.strip()
        if self.harmless is None or text.lower() in map(str.lower, self.harmless):
            return
        values = [one for one in self.harmless if one]
        expected = f"expected {' or '.join(values)}, got" if values else "it is not available, got"
        raise UsageError(f"{self.name}: {expected} {text!r}; {self.instead}")


_STACKS = "ranks are greenlets"
_SOLVER = "pysmpi has a solver of its own"
_SHARES = "pysmpi shares links and cores max-min fairly"
_FLOATS = "pysmpi computes with the precision of floats"
_EXPLORE = "pysmpi explore has its own options"
_TRACES = "--trace FILE chooses the contents and the format"
_MEMORY = "--fold lets ranks share arrays"
_SMPIRUN = "smpirun sets it for itself"
_DEBUG = "it is about SimGrid's own process"
_ENERGY = "the report has the energy of a platform that gives a power, and the load of hosts"

_ROWS = [  # fmt: skip
    # Processes of the simulator.
    *(Foreign(f"contexts/{one}", _STACKS) for one in (
        "factory", "guard-size", "nthreads", "parallel-threshold", "synchro")),
    *(Foreign(f"debug/{one}", _DEBUG) for one in (
        "breakpoint", "clean-atexit", "fullstack", "lmm-leaks", "verbose-exit")),
    Foreign("exception/cutpath", _DEBUG),
    Foreign("msg/debug-multiple-use", _DEBUG),
    Foreign("storage/max_file_descriptors", _DEBUG),
    Foreign("vm/model", "there are no virtual machines"),
    Foreign("help-nostop", _DEBUG),
    Foreign("path", "files are found from the directory of the file that names them"),
    # Models and solvers.
    Foreign("cpu/model", "cores are shared fairly", ("Cas01",), "pysmpi has no other model"),
    Foreign("disk/model", "see disk/...", ("default",), "pysmpi has no other model"),
    Foreign("storage/model", "see disk/...", ("default",), "pysmpi has no other model"),
    Foreign("host/model", "cores and links have a model each", ("default", "compound"),
            "pysmpi has no model of parallel tasks, whose compute and messages are one activity"),
    *(Foreign(f"{one}/solver", _SOLVER, ("maxmin", "default"), _SHARES)
      for one in ("cpu", "disk", "host", "network")),
    *(Foreign(f"{one}/optim", "pysmpi always computes as Full", ("Lazy", "Full", "TI"),
              "SimGrid has no others") for one in ("cpu", "network")),
    *(Foreign(f"{one}/maxmin-selective-update", _SOLVER) for one in ("cpu", "network")),
    Foreign("maxmin/concurrency-limit", "links and cores have no limit", ("-1",),
            "pysmpi lets any number of messages share a link"),
    Foreign("bmf/max-iterations", _SOLVER),
    Foreign("bmf/precision", _SOLVER),
    Foreign("precision/timing", _FLOATS),
    Foreign("precision/work-amount", _FLOATS),
    Foreign("ns3/NetworkModel", "there is no model ns-3"),
    Foreign("ns3/seed", "there is no model ns-3"),
    # Plugins.
    Foreign("plugin", _ENERGY, ("", "host_energy", "link_energy", "link_energy_wifi", "host_load",
            "link_load"),
            "--fault and profiles of the platform change hosts and links"),
    *(Foreign(f"plugin/dvfs/{one}", "there is no plugin host_dvfs") for one in (
        "governor", "max-pstate", "min-pstate", "sampling-rate")),
    *(Foreign(f"cmonkey/{one}", "", (), "--fault lets hosts, links and ranks fail")
      for one in ("host", "link", "pid", "time")),
    Foreign("cmonkey/tell", "nothing fails", NO, "--fault lets hosts, links and ranks fail"),
    # Model checking.
    Foreign("model-check/replay", _EXPLORE, ("",), "--replay-schedule repeats an order of events"),
    *(Foreign(f"model-check/{one}", _EXPLORE) for one in (
        "befs-threshold", "bfs-threshold", "cached-states-interval", "checkpoint",
        "communications-determinism", "debug", "debug-optimality", "dot-output",
        "exploration-algo", "k-alternatives", "max-depth", "max-errors", "no-fork", "output-lts",
        "parallel-thread", "property", "rand-seed", "reduction", "search-critical",
        "send-determinism", "setenv", "strategy", "termination", "timeout", "timeout-soft",
        "unfolding-checker", "visited")),
    # SMPI.
    Foreign("smpi/auto-shared-malloc-thresh", _MEMORY),
    Foreign("smpi/shared-malloc", _MEMORY),
    Foreign("smpi/shared-malloc-blocksize", _MEMORY),
    Foreign("smpi/shared-malloc-hugepage", _MEMORY),
    Foreign("smpi/comp-adjustment-file", "", ("",),
            "pysmpi scales compute by --host-speed and the speeds of hosts, not by its place"),
    Foreign("smpi/display-allocs", "pysmpi shows no allocations"),
    Foreign("smpi/display-timing", "the summary always shows the times"),
    Foreign("smpi/errors-are-fatal", "mpi4py makes errors exceptions"),
    Foreign("smpi/hostfile", "", ("",), "give --hostfile FILE"),
    Foreign("smpi/np", "", ("",), "give -n N"),
    Foreign("smpi/map", "--report lists the hosts of ranks"),
    Foreign("smpi/replay", "", ("",), "pysmpi replay FILE replays a trace"),
    Foreign("smpi/iprobe-cpu-usage", "it is about energy"),
    Foreign("smpi/keep-temps", _SMPIRUN),
    Foreign("smpi/tmpdir", _SMPIRUN),
    Foreign("smpi/papi-events", "pysmpi reads no counters of processors"),
    Foreign("smpi/pedantic", "calls always check their arguments"),
    Foreign("smpi/trace-call-location", "recordings always have the lines of calls"),
    Foreign("smpi/trace-call-use-absolute-path", "recordings always have the lines of calls"),
    # Tracing.
    *(Foreign(f"tracing/{one}", _TRACES) for one in (
        "actor", "basic", "categorized", "comment", "comment-file", "disable-destroy",
        "disable_destroy", "disable_link", "disable_power", "platform", "platform/topology",
        "precision", "smpi/computing", "smpi/display-sizes", "smpi/format/ti-one-file",
        "smpi/group", "smpi/internals", "smpi/sleeping", "uncategorized", "vm")),
]  # fmt: skip

FOREIGN = {row.name: row for row in _ROWS}
