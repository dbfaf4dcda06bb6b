"""MPI.Pickle, and the pickler of the lower-case calls."""

from __future__ import annotations

import marshal
import pickle as standard

import numpy as np
import pytest

from pysmpi.mpi.base import ranks
from pysmpi.mpi.buffers.memory import buffer
from pysmpi.mpi.buffers.pickling import Pickle, pickle

pytestmark = pytest.mark.usefixtures("own_rank")
DATA = {"a": [1, 2.5, None], "b": ("x", b"y")}


@pytest.mark.parametrize("protocol", [None, -1, 0, 1, 2, 3, 4, 5])
def test_protocols(protocol):
    made = Pickle(protocol=protocol)
    assert made.loads(made.dumps(DATA)) == DATA
    assert made.PROTOCOL == (standard.HIGHEST_PROTOCOL if protocol is None else protocol)


def test_other_functions():
    made = Pickle(marshal.dumps, marshal.loads)
    assert made.PROTOCOL is None
    assert made.dumps(DATA) == marshal.dumps(DATA) and made.loads(made.dumps(DATA)) == DATA
    made.PROTOCOL = 2
    assert made.dumps(DATA) == marshal.dumps(DATA, 2)
    made.__init__()
    assert made.dumps(DATA) == standard.dumps(DATA, standard.HIGHEST_PROTOCOL)


def test_large_buffers_stay_outside_of_the_stream():
    small, large = np.arange(10.0), np.arange(100.0)
    made = Pickle(threshold=200)
    data, buffers = made.dumps_oob([small, large])
    assert [type(b) for b in buffers] == [buffer] and buffers[0].nbytes == 800
    assert buffers[0].address == large.ctypes.data
    back = made.loads_oob(data, buffers)
    assert np.array_equal(back[0], small) and np.array_equal(back[1], large)
    made.THRESHOLD = None
    assert made.THRESHOLD == 1024**2 // 4 and made.dumps_oob(large)[1] == []
    frozen = np.arange(100.0)
    frozen.flags.writeable = False
    data, (kept,) = Pickle(threshold=8).dumps_oob(frozen)
    assert kept.readonly


def test_settings_of_the_shared_pickler_belong_to_a_rank(monkeypatch):
    pickle.__init__(protocol=2)
    assert pickle.PROTOCOL == 2
    mine = ranks.outside.state
    monkeypatch.setattr(ranks.outside, "state", [])
    assert pickle.PROTOCOL == standard.HIGHEST_PROTOCOL
    monkeypatch.setattr(ranks.outside, "state", mine)
    assert pickle.PROTOCOL == 2
    assert Pickle().PROTOCOL == standard.HIGHEST_PROTOCOL


def test_the_environment_sets_defaults(monkeypatch):
    monkeypatch.setenv("MPI4PY_PICKLE_PROTOCOL", "3")
    monkeypatch.setenv("MPI4PY_PICKLE_THRESHOLD", "99")
    made = Pickle()
    assert (made.PROTOCOL, made.THRESHOLD) == (3, 99)
