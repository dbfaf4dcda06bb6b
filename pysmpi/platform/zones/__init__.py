"""Kinds of zones: the connections between the members of one part of a platform.

Each kind has its own file. A kind is a class derived from `Zone` and registered with `@zone_kind`.
The readers and `pysmpi platform show` find it by its name, so a new kind only needs a new file
here. Kinds of other distributions are found through the entry point group `pysmpi.zones`. A kind
that builds clusters by itself (a topology, usually a `LeafZone`) also has a `Shape`, its
parameters; `Counts` is the base of shapes of numbers.
"""

from __future__ import annotations

from pysmpi.platform.points import LocalRoute
from pysmpi.platform.zones.base import (
    ZONE_KINDS,
    Counts,
    Makers,
    Shape,
    Zone,
    ZoneKind,
    zone_kind,
)
from pysmpi.platform.zones.leaves import LeafZone

__all__ = [
    "ZONE_KINDS", "Counts", "LeafZone", "LocalRoute", "Makers", "Shape", "Zone", "ZoneKind",
    "load_kinds", "simgrid_kinds", "zone_kind",
]  # fmt: skip


def load_kinds() -> dict[str, type[Zone]]:
    """Every kind of zone by its name."""
    return {kind.name: kind.cls for kind in ZONE_KINDS}


def simgrid_kinds(clusters: bool) -> dict[str, ZoneKind]:
    """The kinds that SimGrid has, by its names: those that build clusters, or the others."""
    kinds = [kind for kind in ZONE_KINDS if kind.cls.builds_clusters is clusters]
    return {name: kind for kind in kinds for name in kind.simgrid}
