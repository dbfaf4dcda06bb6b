"""`--reduction-order algorithm` gives the very bits of a real MPICH that uses that algorithm."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
import real_mpich

import pysmpi

PROGRAM = Path(__file__).resolve().parents[1] / "programs" / "reduction_bits.py"
RANKS = 9
SCANS = {"scan": "recursive_doubling", "exscan": "recursive_doubling"}

# MPICH's name of an algorithm, for each of its variables, and ours.
CHOICES = {
    "trees": (
        {"ALLREDUCE": "recursive_doubling", "REDUCE": "binomial", "REDUCE_SCATTER": "pairwise"},
        {"allreduce": "rdb", "reduce": "binomial", "reduce_scatter": "mpich_pair"},
    ),
    "halving": (
        {"ALLREDUCE": "reduce_scatter_allgather", "REDUCE": "reduce_scatter_gather",
         "REDUCE_SCATTER": "recursive_halving"},
        {"allreduce": "rab_rdb", "reduce": "scatter_gather",
         "reduce_scatter": "ompi_basic_recursivehalving"},
    ),
    "doubling": (
        {"ALLREDUCE": "recursive_doubling", "REDUCE": "binomial",
         "REDUCE_SCATTER": "recursive_doubling"},
        {"allreduce": "rdb", "reduce": "binomial", "reduce_scatter": "mpich_rdb"},
    ),
}  # fmt: skip


def work() -> dict:
    import importlib

    return importlib.import_module("reduction_bits").work()


@pytest.mark.parametrize("choice", CHOICES)
def test_same_bits(choice: str, tmp_path, monkeypatch) -> None:
    if not real_mpich.mpich():
        pytest.skip("no MPICH with mpi4py on this machine")
    theirs, ours = CHOICES[choice]
    # Its own transport would take over small reductions.
    settings = {"DEVICE_COLLECTIVES": "none", "SCAN_INTRA_ALGORITHM": "recursive_doubling"}
    for operation, name in theirs.items():
        settings[f"{operation}_INTRA_ALGORITHM"] = name
    settings["REDUCE_SCATTER_BLOCK_INTRA_ALGORITHM"] = theirs["REDUCE_SCATTER"]
    real_mpich.run(RANKS, PROGRAM, tmp_path / "bits.pickle", **settings)
    expected = pickle.loads((tmp_path / "bits.pickle").read_bytes())
    monkeypatch.syspath_prepend(str(PROGRAM.parent))
    coll = {**SCANS, **ours, "reduce_scatter_block": ours["reduce_scatter"]}
    common = {"coll": coll, "compute": "none"}
    found = pysmpi.run(work, RANKS, reduction_order="algorithm", **common).returns
    for rank in range(RANKS):
        assert expected[rank].keys() == found[rank].keys()
        for (size, count), operations in expected[rank].items():
            for name, bits in operations.items():
                assert found[rank][size, count][name] == bits, (name, size, count, rank)
    # The order matters, or the comparison would show nothing.
    assert pysmpi.run(work, RANKS, reduction_order="rank", **common).returns != found
