"""The energy of hosts and links is that of SimGrid's plugins host_energy and link_energy.

The stored joules come from SimGrid 3.32. Where SMPI is installed, they are made again.
"""

from __future__ import annotations

import re
import shutil
import subprocess

import numpy as np
import pytest

import pysmpi
from pysmpi.errors import UsageError
from pysmpi.platform.loader import load

HEAD = (
    '<?xml version="1.0"?>\n'
    '<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">\n<platform version="4.1">'
)
PROGRAM = """
#include <mpi.h>
#include <stdlib.h>
#include <smpi/smpi.h>
int main(int argc, char **argv) {
  int rank;
  char *data = calloc(1, 4000000);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int step = 1; step <= 3; step++) {
    smpi_execute_flops(1e8 * (rank + 1));
    if (rank % 2 == 0)
      MPI_Send(data, 1000000 * step, MPI_BYTE, rank + 1, 0, MPI_COMM_WORLD);
    else
      MPI_Recv(data, 1000000 * step, MPI_BYTE, rank - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    smpi_execute_flops(5e7);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  MPI_Finalize();
  return 0;
}
"""


def host(name, speed, cores, watts, more=""):
    prop = f'<prop id="wattage_per_state" value="{watts}"/>'
    return f'<host id="{name}" speed="{speed}" core="{cores}"{more}>{prop}</host>'


def link(name, bandwidth, latency, watts):
    prop = f'<prop id="wattage_range" value="{watts}"/>'
    return f'<link id="{name}" bandwidth="{bandwidth}" latency="{latency}">{prop}</link>'


def full(*parts, **routes):
    text = "".join(
        f'<route src="{ends[0]}" dst="{ends[1]}">'
        + "".join(f'<link_ctn id="{one}"/>' for one in links.split())
        + "</route>"
        for ends, links in routes.items()
    )
    return f'{HEAD}<zone id="z" routing="Full">{"".join(parts)}{text}</zone></platform>'


TWO = host("a", "1Gf", 4, "90:105:200")
LINK = link("l", "125MBps", "50us", "10:30")
PLATFORMS = {
    "two": full(TWO, host("b", "2Gf", 2, "60.0:150.0"), LINK, ab="l"),
    "slow": full(host("a", "200Mf", 1, "95:120:200"), host("b", "200Mf", 1, "93:115:170"),
                 link("l", "10MBps", "1ms", "1:5"), ab="l"),
    "fast": full(host("a", "20Gf", 16, "100:130:450"), host("b", "20Gf", 16, "100:450"),
                 link("l", "10GBps", "1us", "0:25"), ab="l"),
    "pstates": full(
        host("a", "100Mf,50Mf,20Mf", 2, "95.0:120.0:200.0, 93.0:115.0:170.0, 90.0:110.0:150.0",
             ' pstate="1"'), host("b", "1Gf", 2, "60:80:150"), LINK, ab="l"),
    "path": full(host("a", "1Gf", 2, "90:105:200"), host("b", "1Gf", 2, "90:105:200"),
                 link("l1", "125MBps", "50us", "10:30"), link("l2", "60MBps", "20us", "5:6"),
                 link("l3", "1GBps", "5us", "0:40"), ab="l1 l2 l3"),
    "three": full(host("a", "1Gf", 2, "90:105:200"), host("b", "3Gf", 2, "10:10:100"),
                  host("c", "500Mf", 4, "20:200"), link("ab", "125MBps", "50us", "10:30"),
                  link("bc", "125MBps", "50us", "10:30"), link("ac", "12MBps", "100us", "3:9"),
                  ab="ab", bc="bc", ac="ac"),
    "idle": full(TWO, host("b", "1Gf", 4, "90:105:200"), host("u", "1Gf", 4, "50:105:200"), LINK,
                 link("m", "125MBps", "50us", "7:30"), ab="l", au="m", bu="m"),
    "zero": full(host("a", "1Gf", 4, "0:0:100"), host("b", "1Gf", 4, "0:50:100"),
                 link("l", "125MBps", "50us", "0:30"), ab="l"),
    "cluster": f'{HEAD}<cluster id="c" prefix="n" suffix="" radical="0-3" speed="1Gf" core="2" '
               'bw="125MBps" lat="50us"><prop id="wattage_per_state" value="100:120:200"/>'
               "</cluster></platform>",
    "shared": full(*(host(name, "1Gf", 4, "90:105:200") for name in "abcd"),
                   link("l", "50MBps", "50us", "10:30"),
                   ab="l", ac="l", ad="l", bc="l", bd="l", cd="l"),
}  # fmt: skip
JOULES: dict[str, dict[str, float]] = {
    "two": {"a": 150.863296, "b": 113.57553, "l": 13.285404},
    "slow": {"a": 1853.092306, "b": 1851.658783, "l": 16.926624},
    "fast": {"a": 9.896676, "b": 9.118551, "l": 0.035687},
    "pstates": {"a": 3245.154572, "b": 1366.82553, "l": 212.785404},
    "path": {"a": 218.96604, "b": 251.863511, "l1": 16.858012, "l2": 7.555596, "l3": 0.551628},
    "three": {
        "a": 345.403376,
        "b": 37.878153,
        "c": 147.756306,
        "ab": 27.746749,
        "ac": 11.365338,
        "bc": 26.628153,
    },
    "idle": {"a": 189.515523, "b": 155.578023, "u": 152.973902, "l": 15.175877, "m": 11.126482},
    "zero": {"a": 37.5, "b": 93.75, "l": 3.346724},
    "cluster": {"n0": 167.573081, "n1": 185.573081, "n2": 203.573081, "n3": 221.573081},
    "shared": {"a": 151.204669, "b": 162.829669, "c": 174.454669, "d": 186.079669, "l": 20.308951},
}

needs_smpi = pytest.mark.skipif(
    shutil.which("smpicc") is None or shutil.which("smpirun") is None,
    reason="needs SMPI (Debian: libsimgrid-dev) to make the joules again",
)


def main():
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    data = np.zeros(3_000_000, "B")
    for step in range(1, 4):
        pysmpi.execute(1e8 * (comm.rank + 1))
        if comm.rank % 2 == 0:
            comm.Send(data[: 1_000_000 * step], comm.rank + 1)
        else:
            comm.Recv(data[: 1_000_000 * step], comm.rank - 1)
        pysmpi.execute(5e7)
        comm.Barrier()


def joules_of(result: pysmpi.Result) -> dict[str, float]:
    energy = result.energy
    assert energy is not None
    found = {one["host"]: one["joules"] for one in energy["hosts"]}
    return found | {one["link"]: one["joules"] for one in energy["links"]}


@pytest.mark.parametrize("name", PLATFORMS)
def test_as_simgrid(name, write):
    path = write("platform.xml", PLATFORMS[name])
    result = pysmpi.run(main, 4, platform=path, map_by="node", compute="none")
    found = joules_of(result)
    assert found.keys() == JOULES[name].keys()
    for one, joules in JOULES[name].items():
        assert found[one] == pytest.approx(joules, rel=0.01), one
    energy = result.energy
    assert energy["joules"] == pytest.approx(sum(found.values()))
    used = {rank["host"] for rank in result.ranks}
    hosts = sum(one["joules"] for one in energy["hosts"] if one["host"] in used)
    assert sum(energy["ranks"]) == pytest.approx(hosts, rel=1e-6)


@needs_smpi
def test_the_stored_joules_are_simgrid_s(write, tmp_path):
    source = write("program.c", PROGRAM)
    program = tmp_path / "program"
    subprocess.run(["smpicc", source, "-o", program], check=True, capture_output=True)
    for name in ("two", "pstates", "slow"):
        path = write("platform.xml", PLATFORMS[name])
        found = {}
        for plugin in ("host_energy", "link_energy"):
            told = subprocess.run(
                ["smpirun", "-np", "4", "-platform", path, f"--cfg=plugin:{plugin}",
                 "--cfg=smpi/simulate-computation:no", program],
                check=True, capture_output=True, text=True,
            )  # fmt: skip
            for one in re.finditer(
                r"Energy consumption of (?:host|link) '?([^:' ]+)'?: ([0-9.]+)",
                told.stdout + told.stderr,
            ):
                found[one[1]] = float(one[2])
        assert {k: v for k, v in found.items() if v} == pytest.approx(JOULES[name], rel=1e-6), name


def test_a_yaml_file_gives_power(write):
    path = write(
        "machine.yaml",
        """
name: two
hosts:
  - {name: a, speed: 1Gf, cores: 4, properties: {wattage_per_state: "90:105:200"}}
  - {name: b, speed: 2Gf, cores: 2, properties: {wattage_per_state: "60.0:150.0"}}
links:
  - {name: l, bandwidth: 125MBps, latency: 50us, properties: {wattage_range: "10:30"}}
routes:
  - {from: a, to: b, via: [l]}
preset: smpi
""",
    )
    result = pysmpi.run(main, 4, platform=path, map_by="node", compute="none")
    assert joules_of(result) == pytest.approx(JOULES["two"], rel=0.01)


@pytest.mark.parametrize(
    "watts",
    ["10", "1:2:3:4", "a:b", "-1:5", "1:inf", "1:2,1:2"],
)
def test_wrong_watts(watts, write):
    path = write("platform.xml", full(host("a", "1Gf", 1, watts), host("b", "1Gf", 1, "1:2"),
                                      LINK, ab="l"))  # fmt: skip
    with pytest.raises(UsageError, match="host a: wattage_per_state: expected"):
        pysmpi.run(main, 2, platform=path, compute="none")


def test_machines_without_power_have_no_energy():
    assert pysmpi.run(main, 2, compute="none").energy is None
    assert not any(one.properties for one in load("graphene").links)


def test_operations_take_the_time_of_the_core():
    def compute():
        from mpi4py import MPI

        begin = MPI.Wtime()
        pysmpi.execute(3e9)
        return MPI.Wtime() - begin

    result = pysmpi.run(compute, 1, platform="graphene", compute="none", cfg={"smpi/wtime": "0"})
    speed = load("graphene").hosts[0].speed
    assert speed is not None
    assert result.returns[0] == pytest.approx(3e9 / speed)
    assert result.ranks[0]["compute_seconds"] == pytest.approx(3e9 / speed)
    pysmpi.execute(1e9)  # outside of a run
    for wrong in (-1.0, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="expected a number of operations"):
            pysmpi.execute(wrong)
