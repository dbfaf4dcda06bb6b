"""Costs of reads and writes of memory: throughputs by state and size, latencies of a line.

Each round first brings the lines of a buffer into a state; for some states, the partner on another
core helps. Then the round times one access. An empty call of the same function precedes it, and
other rounds time an empty call, to measure the fixed cost. The results are lower quartiles: a busy
or virtual computer delays some rounds, and a single lucky round should not count. Access names are
those of `platform.node_description`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from pysmpi.calibrate.accesses import LINE, CLibrary, PointerChain, SharedArena, calls
from pysmpi.calibrate.cache_control import CacheControl
from pysmpi.calibrate.partner import Partner, pin
from pysmpi.calibrate.topology import Topology
from pysmpi.errors import PysmpiError, UsageError

SIZES = tuple(1 << k for k in range(12, 24))  # 4 KiB to 8 MiB
ROUNDS = 40  # for buffers that are in some cache
FEW = 12  # where each round first empties all caches
# By the process that sets the state of the lines. SHS has the distance of the other holder.
OWN = ("LHM", "SHM", "LHS", "LHE", "SHE")
WITH_PARTNER = ("SHS", "LMM", "SMM", "LME", "LMS", "SMS")
DISPLACED = ("LMS", "SMS")  # the own copy of a shared line is pushed out
FROM_MEMORY = ("LMI", "SMI")
CONTROLLED = ("SNT", "FHM", "FHS")  # by instructions that control caches
EMPTIED = {"LHE", "SHE", "LME", *FROM_MEMORY}  # all caches are emptied first
LATENCIES = ("LHM", "LHE", "LHS", "LMM", "LME", "LMI")
STEADY = 0.3  # largest relative change of the latency of a line
LONG = 256 << 10  # bytes
CHAIN_IN_MEMORY = 4096  # lines, several pages
Tick = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Figure:
    """A measured quantity: its value, and the quartiles of the rounds."""

    value: float
    low: float
    high: float


@dataclass
class Measured:
    """The measurements, by access and distance (-1: no other core): bytes/s and seconds.

    `overlap` is the part of the shorter of a copy's load and store that the longer one hides.
    `uncontrolled` is the reason why there are no accesses of `CONTROLLED`, if there is one.
    """

    topology: Topology
    curves: dict[tuple[str, int], dict[int, Figure]] = field(default_factory=dict)
    latencies: dict[tuple[str, int], Figure] = field(default_factory=dict)
    overlap: dict[int, float] = field(default_factory=dict)
    uncontrolled: str = ""


def quartiles(values: Sequence[float]) -> tuple[float, float, float]:
    """(lower quartile, median, upper quartile)."""
    ordered = sorted(values)
    last = len(ordered) - 1
    return tuple(ordered[round(last * part)] for part in (0.25, 0.5, 0.75))  # type: ignore[return-value]


class Bench:
    """One core that measures, one that helps, and the memory that both use."""

    def __init__(
        self, topology: Topology, largest: int, flooded: bool = True,
        control: CacheControl | None = None,
    ) -> None:  # fmt: skip
        """`flooded` is true if caches will be emptied; `control` is for `CONTROLLED`."""
        self.topology = topology
        self.control = control
        self.library = CLibrary()
        last = topology.caches[-1]
        # Reading three times the size of the last cache evicts everything else.
        self.flood = 3 * last.size if flooded else 4096
        first = topology.caches[0].size
        chain = max(64, first // LINE // 2)
        pages = 1 << 16
        self.arena = SharedArena(
            self.flood + 3 * largest + (4 * CHAIN_IN_MEMORY + chain) * LINE + pages
        )
        self.near = PointerChain(self.arena, chain)
        self.wide = PointerChain(self.arena, CHAIN_IN_MEMORY)
        self.image = self.arena.take(self.near.nbytes)
        self.library.copy(self.image, self.near.address, self.near.nbytes)
        self.buffer = self.arena.take(largest)
        self.target = self.arena.take(largest)
        self.water = self.arena.take(self.flood)
        private = [cache.size for cache in topology.caches if cache.cores == 1]
        # Reading twice the size of the private caches evicts the lines that only they hold.
        self.puddle = min(self.flood, 2 * max(private, default=first))
        self.library.store(self.water, self.flood)
        self.library.store(self.buffer, largest)
        self.library.store(self.target, largest)

    def close(self) -> None:
        """Give the memory back."""
        self.arena.close()

    def empty(self) -> None:
        """Push everything else out of the caches."""
        self.library.load(self.water, self.flood)

    def timed(
        self, prepare: Callable[[], None], function: Callable[..., None],
        full: tuple[object, ...], nothing: tuple[object, ...], rounds: int, often: int = 1,
    ) -> tuple[float, float, float] | None:  # fmt: skip
        """Quartiles of the seconds of a call, minus those of an empty call.

        Every `often`-th round also times the empty call. None if the difference is not larger than
        the spread of empty calls.
        """
        busy: list[float] = []
        idle: list[float] = []
        for i in range(rounds):
            for arguments, times in ((full, busy), (nothing, idle)):
                if times is idle and i % often:
                    continue
                prepare()
                calls(function, nothing)
                times.append(calls(function, arguments))
        besides, usual, _ = quartiles(idle)
        low, middle, high = (seconds - besides for seconds in quartiles(busy))
        return None if low <= usual - besides or low <= 0.0 else (low, middle, high)

    def stream(
        self, access: str, partner: Partner, nbytes: int, rounds: int = ROUNDS
    ) -> Figure | None:
        """Bytes/s of an access to a buffer; None if it is too short to be seen."""
        library, address = self.library, self.buffer

        def prepare() -> None:
            if access in EMPTIED:
                self.empty()
            if access in ("LHM", "SHM", "LHS", "SHS", "FHM", "FHS"):
                library.store(address, nbytes)
            if access == "SNT":  # as a sender finds the buffer after the receiver's loads
                function(address, byte, nbytes)
            if access in ("LHE", "SHE"):
                library.load(address, nbytes)
            if access in ("LHS", "SHS", "LME", "FHS", "SNT"):
                partner.load(address, nbytes)
            if access in ("LHS", "FHS"):  # a modified line may have moved to its reader altogether
                library.load(address, nbytes)
            if access in ("LMM", "SMM", *DISPLACED):
                partner.store(address, nbytes)
            if access in DISPLACED:  # both share the lines, then only the partner has them
                library.load(address, nbytes)
                library.load(self.water, self.puddle)

        function, byte = library.memset, 0
        if access[0] == "L":
            function, byte = library.memchr, 1
        elif self.control is not None and access in CONTROLLED:
            function = self.control.store_past if access == "SNT" else self.control.flush
        # Emptying the caches takes long, and a call takes little next to a large buffer.
        often = 4 if access in EMPTIED and nbytes >= LONG else 1
        timing = self.timed(
            prepare, function, (address, byte, nbytes), (address, byte, 0), rounds, often
        )
        if timing is None:
            return None
        low, middle, high = timing
        return Figure(nbytes / low, nbytes / high, nbytes / middle)

    def latency(self, access: str, partner: Partner, rounds: int = ROUNDS) -> Figure:
        """Seconds until a line arrives that holds the next address."""
        library = self.library
        chain = self.wide if access == "LMI" else self.near
        place = chain.address, chain.nbytes

        def prepare() -> None:
            if access in ("LMI", "LHE"):
                self.empty()
                if access == "LHE":
                    library.follow(chain.root)
            elif access == "LMM":
                partner.copy(place[0], self.image, place[1])
            elif access == "LME":
                self.empty()
                partner.load(*place)
            else:
                library.copy(place[0], self.image, place[1])
                if access == "LHS":
                    partner.load(*place)
                library.follow(chain.root)

        follow = library.tfind
        full = (library.key, chain.root, library.order)
        nothing = (library.key, chain.empty, library.order)
        timing = self.timed(prepare, follow, full, nothing, rounds)
        if timing is None:
            raise PysmpiError(f"calibrate memory: this computer is too busy to measure {access}")
        low, middle, high = (seconds / chain.lines for seconds in timing)
        return Figure(low, low, max(middle, high))

    def overlap(self, partner: Partner, nbytes: int, load: float, store: float) -> float | None:
        """The hidden part of a copy's shorter half: a load from the partner, a store at home.

        `load` and `store` are the throughputs of the two (bytes/s).
        """
        library = self.library

        def prepare() -> None:
            library.store(self.target, nbytes)
            partner.store(self.buffer, nbytes)

        pair = self.target, self.buffer
        timing = self.timed(prepare, library.memmove, (*pair, nbytes), (*pair, 0), ROUNDS)
        if timing is None:
            return None
        a, b = nbytes / load, nbytes / store
        return min(1.0, max(0.0, (a + b - timing[0]) / min(a, b)))


def measure(
    topology: Topology, sizes: Sequence[int] = SIZES, tick: Tick = lambda what: None
) -> Measured:
    """Measure this computer. `tick` is called with each finished step; see `steps`."""
    measured = Measured(topology)
    control = None
    try:
        control = CacheControl(topology.line)
    except UsageError as error:
        measured.uncontrolled = str(error)
    bench = Bench(topology, max(sizes), control=control)
    allowed = os.sched_getaffinity(0)
    pin(topology.cpus[0])
    try:
        for number, near in enumerate(topology.distances):
            with Partner(near.cpu) as partner:
                _latencies(measured, bench, partner, number, tick)
                _curves(measured, bench, partner, number, sizes, tick)
    finally:
        bench.close()
        os.sched_setaffinity(0, allowed)
    return measured


def steps(topology: Topology, sizes: Sequence[int] = SIZES) -> int:
    """The largest number of calls of `tick`."""
    distances = len(topology.distances)
    alone = len(OWN) + len(FROM_MEMORY) + len(CONTROLLED)
    curves = len(sizes) * (alone + (len(WITH_PARTNER) + 1) * distances)
    lines = sum(_place(access, number) is not None
                for access in LATENCIES for number in range(distances))  # fmt: skip
    return curves + lines


def _place(access: str, number: int) -> tuple[str, int] | None:
    """The distance under which an access is stored; None if another distance already has it."""
    if access in WITH_PARTNER:
        return access, number
    return (access, -1) if number == 0 else None


def _latencies(measured: Measured, bench: Bench, partner: Partner, number: int, tick: Tick) -> None:
    for access in LATENCIES:
        place = _place(access, number)
        if place is None:
            continue
        rounds = FEW if access in ("LMI", "LME") else ROUNDS
        measured.latencies[place] = bench.latency(access, partner, rounds)
        tick(f"line {access}")


def _curves(
    measured: Measured, bench: Bench, partner: Partner, number: int, sizes: Sequence[int],
    tick: Tick,
) -> None:  # fmt: skip
    controlled = CONTROLLED if bench.control is not None else ()
    for access in (*OWN, *WITH_PARTNER, *FROM_MEMORY, *controlled):
        place = _place(access, number)
        if place is None:
            continue
        curve = measured.curves[place] = {}
        for nbytes in sizes:
            rounds = ROUNDS if access not in EMPTIED else FEW if nbytes < LONG else FEW // 2
            figure = bench.stream(access, partner, nbytes, rounds)
            if figure is None and nbytes == sizes[-1]:
                figure = bench.stream(access, partner, nbytes, 4 * rounds)
            if figure is not None:
                curve[nbytes] = figure
            tick(f"{access} {nbytes} B")
        if not curve:
            raise PysmpiError(
                f"calibrate memory: no buffer was large enough to see {access}; give a larger "
                "--max-size, or end other programs"
            )
    for nbytes in sizes:
        load = measured.curves["LMM", number].get(nbytes)
        store = measured.curves["SHM", -1].get(nbytes)
        if number == 0 and load is not None and store is not None:
            part = bench.overlap(partner, nbytes, load.value, store.value)
            if part is not None:
                measured.overlap[nbytes] = part
        tick(f"overlap {nbytes} B")


class Probe:
    """Tells whether the latency of a line between two cores is unchanged.

    Virtual machines move cores: nearer, farther, or to the hardware threads of one core. Earlier
    measurements are then no longer valid.
    """

    def __init__(self, topology: Topology, expected: float) -> None:
        self.topology = topology
        self.expected = expected
        self.seen: list[float] = []

    def __call__(self) -> bool:
        """Measure again; return whether the value is within `STEADY` of the expected one."""
        self.seen.append(line_latency(self.topology))
        return abs(self.seen[-1] / self.expected - 1.0) <= STEADY


def line_latency(topology: Topology) -> float:
    """Seconds of a line that the nearest other core has modified."""
    bench = Bench(topology, 4096, flooded=False)
    allowed = os.sched_getaffinity(0)
    pin(topology.cpus[0])
    try:
        with Partner(topology.distances[0].cpu) as partner:
            return bench.latency("LMM", partner).value
    finally:
        bench.close()
        os.sched_setaffinity(0, allowed)
