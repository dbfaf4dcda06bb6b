"""Rank files: the host and core of each rank."""

import pytest

from pysmpi.errors import UsageError
from pysmpi.platform import load
from pysmpi.platform.placement import place, ranks_of_hostfile

MACHINE = load("multicore-cluster")


def placed(tmp_path, text, nprocs, **options):
    path = tmp_path / "ranks"
    path.write_text(text)
    slots = place(MACHINE, nprocs, path, **options)
    return [(slot.host.name[-1], slot.core) for slot in slots]


def test_each_rank_has_its_core(tmp_path):
    text = (
        "# as for mpirun\n\nrank 1=multicore-2 slot=5\nrank 0=multicore-1 slot=1:3\n"
        "RANK  2 = multicore-1   slots=2-3\nrank 3=multicore-1\nrank 4=multicore-0 slot=1:*\n"
    )
    expected = [("1", 7), ("2", 5), ("1", 2), ("1", 2), ("0", 4)]
    assert placed(tmp_path, text, 5) == expected
    assert placed(tmp_path, text, 2) == expected[:2]
    assert ranks_of_hostfile(tmp_path / "ranks") == 5


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rank 0=multicore-1 slot=9", ":1: slot: expected a core below 8 of multicore-1, got 9"),
        ("rank 0=multicore-1 slot=1:4", ":1: slot: expected a core below 4 of multicore-1, got 4"),
        ("rank 0=multicore-1 slot=2:0", ":1: slot: expected a socket below 2 of multicore-1"),
        ("rank 0=multicore-1 slot=:0", ":1: slot: expected a core such as 3, or SOCKET:C"),
        ("rank 0=multicore-1 slot=x", ':1: expected "rank N=HOST slot=CORE", got'),
        ("rank x=multicore-1", ':1: expected "rank N=HOST slot=CORE", got'),
        ("rank 0=multicore-1\nmulticore-2:4", ':2: expected "rank N=HOST slot=CORE", got'),
        ("rank 0=multicore-9", ':1: .*there is no host "multicore-9"'),
        ("rank 0=multicore-1\nrank 0=multicore-2", ":2: expected each rank once, got rank 0 again"),
        ("rank 1=multicore-1", "expected a line for rank 0, got none"),
    ],
)  # fmt: skip
def test_a_wrong_line_is_named(tmp_path, text, message):
    with pytest.raises(UsageError, match=message):
        placed(tmp_path, text, 1)


def test_options_that_place_ranks_are_refused(tmp_path):
    with pytest.raises(UsageError, match="--map-by: expected none with a rank file"):
        placed(tmp_path, "rank 0=multicore-1", 1, map_by="node")
    with pytest.raises(UsageError, match="--rank-by: expected none with a rank file"):
        placed(tmp_path, "rank 0=multicore-1", 1, rank_by="node")
