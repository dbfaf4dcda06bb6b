"""The figures of a report as plain data; `report.schema.json` describes them."""

from __future__ import annotations

from typing import NotRequired, TypedDict


class RankFigures(TypedDict):
    """The figures of a rank (simulated seconds); `state` says how it ended."""

    rank: int
    host: str
    begin_seconds: float
    end_seconds: float
    compute_seconds: float
    communication_seconds: float
    wait_seconds: float
    core_wait_seconds: float
    state: str


class SampledFigures(TypedDict):
    """The passes of a place that is sampled."""

    place: str
    scope: str
    kinds: int
    ran: int
    skipped: int
    charged_seconds: float
    saved_seconds: float
    largest_relative_error: float | None
    trend: float | None


class OnceFigures(TypedDict):
    """The calls of a function that runs once for all ranks."""

    place: str
    ran: int
    shared: int
    charged_seconds: float
    saved_seconds: float
    one_object_for_all: bool


class NotSampledFigures(TypedDict):
    """A place that automatic sampling does not sample."""

    place: str
    reason: str
    host_seconds: float


class ShadowFigures(TypedDict):
    """The work that shadow execution has skipped; no rank has loaded the `not_loaded` places."""

    sampled: list[SampledFigures]
    once: list[OnceFigures]
    not_loaded: list[str]
    not_sampled: NotRequired[list[NotSampledFigures]]


class FoldedLineFigures(TypedDict):
    """The folded arrays that a line of the program allocates (bytes)."""

    place: str
    function: str
    arrays: int
    needed_bytes: int
    taken_bytes: int


class FoldingFigures(TypedDict):
    """The memory of folded arrays (bytes)."""

    needed_bytes: int
    taken_bytes: int
    resident_bytes: int | None
    job_bytes: int | None
    arrays: int
    lines: list[FoldedLineFigures]


class HostEnergyFigures(TypedDict):
    """The energy of a host; `load` is the part of its cores that was in use."""

    host: str
    joules: float
    idle_joules: float
    busy_seconds: float
    load: float


class LinkEnergyFigures(TypedDict):
    """The energy of a link, and the bytes that it carried, cross-traffic included."""

    link: str
    joules: float
    idle_joules: float
    bytes: float


class EnergyFigures(TypedDict):
    """The energy of hosts and links that have a power; `ranks` are the joules of each rank.

    Ranks of a host share what none of them causes alone.
    """

    joules: float
    hosts: list[HostEnergyFigures]
    links: list[LinkEnergyFigures]
    ranks: list[float]


class IntervalFigures(TypedDict):
    """An interval of the predicted time (simulated seconds), and the probability `level` of it.

    Its ends are None if a part has no known error; `unknown` says which. `errors` are the standard
    deviations of the logarithms of its parts, `sources` say where they are from.
    """

    level: float
    low_seconds: float | None
    high_seconds: float | None
    errors: dict[str, float]
    sources: list[str]
    unknown: list[str]


class IntervalsFigures(TypedDict):
    """The intervals of a run: of the prediction, and of the time of the same run in full."""

    prediction: IntervalFigures | None
    sampling: IntervalFigures | None


class SteadyFigures(TypedDict):
    """The times of blocks with `--compute steady` (seconds of this computer)."""

    measured_seconds: float
    charged_seconds: float
    rare_seconds: float


class BlockFigures(TypedDict):
    """The number of blocks of compute of the ranks with the fewest and with the most."""

    fewest: int
    most: int


class PathPlaceFigures(TypedDict):
    """The time of the critical path at a place (simulated seconds)."""

    cause: str
    place: str
    seconds: float


class CriticalPathFigures(TypedDict):
    """The critical path of a run (simulated seconds)."""

    seconds: float
    causes: dict[str, float]
    changes_of_rank: int
    places: list[PathPlaceFigures]


class SiteFigures(TypedDict):
    """The calls of MPI at a line of the program, over all ranks."""

    site: str
    calls: int
    seconds: float
    wait_seconds: float
    sent_bytes: int
    late_seconds: dict[str, float]


class AnalysisFigures(TypedDict):
    """The analysis of a run; `schema` is the version of its form."""

    schema: int
    seconds: float
    ranks: int
    limit: str
    text: list[str]
    critical_path: CriticalPathFigures
    efficiencies: dict[str, float] | None
    sensitivity: dict[str, float]
    what_if: dict[str, float]
    wait_states: dict[str, float]
    sites: list[SiteFigures]
    compute_lines: dict[str, float]
    rank_compute_seconds: list[float]
    rank_wait_seconds: list[float]
    predicted_seconds: NotRequired[float]
    interval: NotRequired[IntervalFigures]
