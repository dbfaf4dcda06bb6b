"""The hardware of processes, and splits of communicators along it.

MPI 4.1, sections 7.4.2 (MPI_Comm_split_type) and 9.1.2 (MPI_Get_hw_resource_info). The names are
those of hwloc. A rank is placed on one core of one host of the platform, so it uses one instance of
every kind of resource.
"""

from __future__ import annotations

from collections.abc import Sequence

from pysmpi.mpi.base.constants import (
    COMM_TYPE_HW_GUIDED,
    COMM_TYPE_HW_UNGUIDED,
    COMM_TYPE_RESOURCE_GUIDED,
    COMM_TYPE_SHARED,
    UNDEFINED,
)
from pysmpi.mpi.base.info import Info
from pysmpi.mpi.base.ranks import Rank
from pysmpi.mpi.groups.communicator import Communicator

TYPE, PSET = "mpi_hw_resource_type", "mpi_pset_name"
SHARED = "mpi_shared_memory"
MACHINE, PACKAGE, NUMA, CORE = (
    f"hwloc://{kind}" for kind in ("Machine", "Package", "NUMANode", "Core")
)
# More than a machine has of any other resource.
_MOST = 1 << 16


def resources(rank: Rank) -> dict[str, int]:
    """The resources of a rank, from the largest on: their kinds, and the number of its instance.

    Different instances have different numbers, also on different hosts.
    """
    host = rank.host
    if host is None:
        return {MACHINE: 0, CORE: 0}
    core, node = rank.core_number, host.node
    found = {PACKAGE: core * host.sockets // host.cores}
    if node is not None:
        found[NUMA] = node.numa_of(core)
        for cache in reversed(node.caches):
            found[f"hwloc://L{cache.level}Cache"] = core // cache.cores
    found[CORE] = core
    own = {MACHINE: host.index}
    return own | {kind: host.index * _MOST + number for kind, number in found.items()}


def split_color(rank: Rank, communicator: Communicator, split_type: int, info: Info) -> int | None:
    """The color of a rank in `Split_type`; None for an unknown type of split."""
    if split_type == UNDEFINED:
        return UNDEFINED
    own = resources(rank)
    if split_type == COMM_TYPE_SHARED:
        return own[MACHINE]
    if split_type in (COMM_TYPE_HW_GUIDED, COMM_TYPE_RESOURCE_GUIDED):
        wanted = info.Get(TYPE) if info else None
        if wanted is None and info and split_type == COMM_TYPE_RESOURCE_GUIDED:
            return _process_set(rank, info.Get(PSET))
        return own.get(MACHINE if wanted == SHARED else str(wanted), UNDEFINED)
    if split_type == COMM_TYPE_HW_UNGUIDED:
        kind = _next_level([communicator.universe.ranks[pid] for pid in communicator.group])
        if kind is None:
            return UNDEFINED
        if info:
            info.Set(TYPE, kind)
        return own[kind]
    return None


def _process_set(rank: Rank, name: object) -> int:
    folded = str(name).casefold()
    if folded == "mpi://world":
        return rank.world.first
    return rank.pid if folded == "mpi://self" else UNDEFINED


def _next_level(ranks: Sequence[Rank]) -> str | None:
    """The largest kind of resource of which the ranks do not all share one instance."""
    all_of_them = [resources(rank) for rank in ranks]
    for kind in all_of_them[0]:
        instances = {found.get(kind) for found in all_of_them}
        if len(instances) > 1 and None not in instances:
            return kind
    return None
