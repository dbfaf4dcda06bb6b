"""The default machine. It is that of `machines/cluster.yaml`, without the time to read YAML."""

from __future__ import annotations

from pathlib import Path

from pysmpi.platform.definition import ClusterDef, PlatformDef, ZoneDef

# The machines that ship with pysmpi.
MACHINES = Path(__file__).parent / "machines"
DEFAULT = "cluster"


def default_machine() -> PlatformDef:
    """The definition of the default machine, without its description."""
    path = str(MACHINES / f"{DEFAULT}.yaml")
    overheads = "0:2e-07:5e-11;16384:0:0"
    nodes = ClusterDef(
        "nodes",
        prefix="cluster-n",
        suffix="",
        radical=[(0, 63)],
        speeds=(),
        bandwidth=12.5e9,
        latency=0.5e-6,
        cores=32,
        sockets=2,
        loopback=(8e9, 300 * 1e-9),
        where=path,
        own_link=False,
    )
    return PlatformDef(
        DEFAULT,
        ZoneDef("_world_", members=[nodes], where=path),
        path,
        config={
            "smpi/os": overheads,
            "smpi/ois": overheads,
            "smpi/or": overheads,
            "smpi/bw-factor": "0:0.92",
            "smpi/lat-factor": "0:1;16384:3",
            "smpi/async-small-thresh": "16384",
            "smpi/send-is-detached-thresh": "16384",
            "memory/bandwidth": "200GBps",
        },
    )
