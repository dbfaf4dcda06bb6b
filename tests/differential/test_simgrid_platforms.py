"""SimGrid's own examples of platforms: each is read, or refused with its reason.

They are SimGrid's and not copied here: PYSMPI_SIMGRID names a clone of
https://framagit.org/simgrid/simgrid.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from pysmpi.errors import UsageError
from pysmpi.platform import load
from tests.platform.listed_routes import assert_route

DATA = Path(__file__).resolve().parents[1] / "data"

CLONE = os.environ.get("PYSMPI_SIMGRID")
EXAMPLES = Path(CLONE or ".") / "examples" / "platforms"

pytestmark = pytest.mark.skipif(
    CLONE is None, reason="PYSMPI_SIMGRID does not name a clone of SimGrid"
)

REFUSED = {
    "wifi": 'zones of kind "Wifi" are not supported: there is no model of a radio channel',
    "wifi_energy": 'zones of kind "Wifi" are not supported: there is no model of a radio channel',
    "wifi_large_cell": 'zones of kind "Wifi" are not supported: there is no model of a radio chan',
    "wifi_ns3": 'zones of kind "WIFI" are not supported: there is no model of a radio channel',
}


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.xml")), ids=lambda path: path.stem)
def test_every_example_is_read_or_refused_with_its_reason(path):
    reason = REFUSED.get(path.stem)
    if reason is None:
        assert load(path).hosts
        return
    with pytest.raises(UsageError) as refused:
        load(path)
    assert reason in str(refused.value)
    assert str(path) in str(refused.value)


# Files that SimGrid 3.32 refuses, or in which it finds no routes.
UNREAD = {"cloud", "cluster_and_one_host", "config", "small_platform_routing_none"}
PAIRS = 12  # hosts at each end, spread over all


@pytest.fixture(scope="module")
def listed(tmp_path_factory):
    """A program that lists routes as the installed SimGrid computes them."""
    if shutil.which("g++") is None or not Path("/usr/include/simgrid/s4u.hpp").exists():
        pytest.skip("needs SimGrid (Debian: libsimgrid-dev) to list its routes")
    program = tmp_path_factory.mktemp("routes") / "routes"
    source = DATA / "routes" / "routes.cpp"
    subprocess.run(
        ["g++", "-std=c++17", str(source), "-o", str(program), "-lsimgrid"],
        check=True,
        timeout=120,
    )
    return program


@pytest.mark.parametrize(
    "path",
    [path for path in sorted(EXAMPLES.glob("*.xml")) if path.stem not in UNREAD | REFUSED.keys()],
    ids=lambda path: path.stem,
)
def test_routes_are_those_that_simgrid_lists(listed, path, tmp_path):
    """Link for link, with bandwidth, sharing and latency."""
    command = [str(listed), str(path.resolve()), str(PAIRS), "--log=root.thres:critical"]
    # Some of the examples turn tracing on, which writes a file.
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path,
                          timeout=60)  # fmt: skip
    platform = load(path)
    same = 0
    for line in done.stdout.splitlines():
        src, dst, latency, *links = line.split("\t")
        if latency == "none" or not (links or float(latency)):
            # SimGrid says so, or lists no links, where the file has no route.
            with pytest.raises(UsageError, match="there is no route"):
                platform.route(platform.host(src), platform.host(dst))
            continue
        assert_route(platform, src, dst, latency, links)
        same += 1
    assert same > 0
