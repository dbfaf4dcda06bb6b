"""Statuses."""

from __future__ import annotations

import copy
import ctypes
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pysmpi.mpi.base import handles
from pysmpi.mpi.base.constants import (
    ANY_SOURCE,
    ANY_TAG,
    ERR_ARG,
    ERR_COUNT,
    ERR_TYPE,
    F_ERROR,
    F_SOURCE,
    F_STATUS_SIZE,
    F_TAG,
    SUCCESS,
    UNDEFINED,
)
from pysmpi.mpi.base.exceptions import Exception as MPIException
from pysmpi.mpi.datatypes import datatypes
from pysmpi.mpi.datatypes.datatypes import BYTE, DATATYPE_NULL, Datatype
from pysmpi.mpi.datatypes.status import Status

C_INT = st.integers(-(2**31), 2**31 - 1)
DOUBLE, INT, SHORT, SHORT_INT = (
    datatypes.PREDEFINED[name] for name in ("DOUBLE", "INT", "SHORT", "SHORT_INT")
)


def filled(nbytes: int) -> Status:
    status = Status()
    status._fill(1, 2, nbytes)
    return status


def test_an_empty_status() -> None:
    status = Status()
    assert (status.source, status.tag, status.error) == (ANY_SOURCE, ANY_TAG, SUCCESS)
    assert status.count == 0 and status.cancelled is False


@pytest.mark.usefixtures("as_mpi4py")
@given(C_INT, C_INT, C_INT, st.integers(0, 2**63 - 1), st.booleans())
def test_fields_are_independent(source, tag, error, count, cancelled) -> None:
    status = Status()
    status._fill(source, tag, count, cancelled)
    status.error = error
    assert (status.source, status.tag, status.error) == (source, tag, error)
    assert (status.count, status.cancelled) == (count, cancelled)
    status.cancelled = not cancelled
    assert status.count == count
    copies = [Status(status), Status.f2py(status.py2f()), copy.copy(status)]
    copies += [pickle.loads(pickle.dumps(status, protocol)) for protocol in range(6)]
    assert all(other == status and other is not status for other in copies)


@pytest.mark.parametrize("power", [0, 1, 30, 31, 32, 33, 61, 62, 63])
@pytest.mark.parametrize("cancelled", [False, True])
def test_bytes_next_to_the_limits_of_its_fields(power: int, cancelled: bool) -> None:
    """They have 63 bits, in two fields of 32 bits; one bit is that of a cancelled call."""
    for nbytes in {2**power - 1, min(2**power, 2**63 - 1)}:
        status = Status()
        status._fill(1, 2, nbytes, cancelled)
        assert (status.count, status.cancelled) == (nbytes, cancelled)
        assert (status.source, status.tag) == (1, 2)


def test_copies_are_independent() -> None:
    status = filled(8)
    other = Status(status)
    other.source = 5
    assert status.source == 1 and status != other


@pytest.mark.parametrize(
    ("datatype", "nbytes", "count", "elements"),
    [
        (BYTE, 7, 7, 7),
        (INT, 12, 3, 3),
        (SHORT, 12, 6, 6),
        (DOUBLE, 12, UNDEFINED, UNDEFINED),
        (SHORT_INT, 12, 2, 4),
        (SHORT_INT, 8, UNDEFINED, 3),
        (SHORT_INT, 9, UNDEFINED, UNDEFINED),
        (INT, 0, 0, 0),
    ],
)
def test_counts(datatype: Datatype, nbytes: int, count: int, elements: int) -> None:
    status = filled(nbytes)
    assert status.Get_count(datatype) == count
    assert status.Get_elements(datatype) == elements


@given(st.lists(st.sampled_from([BYTE, SHORT, INT, DOUBLE]), min_size=1, max_size=4), st.data())
def test_elements_of_a_structure(parts: list[Datatype], data: st.DataObject) -> None:
    lengths = [data.draw(st.integers(0, 3)) for _ in parts]
    made = Datatype.Create_struct(lengths, [64 * i for i in range(len(parts))], parts)
    sizes = [part.size for part, length in zip(parts, lengths) for _ in range(length)]
    nbytes = data.draw(st.integers(0, 3 * sum(sizes) + 1))
    expected, rest = 0, nbytes
    while sizes and rest:
        size = sizes[expected % len(sizes)]
        if rest < size:
            break
        rest -= size
        expected += 1
    assert filled(nbytes).Get_elements(made) == (UNDEFINED if rest else expected)
    made.Free()


def test_empty_datatypes() -> None:
    empty = INT.Create_contiguous(0)
    assert filled(0).Get_count(empty) == 0
    assert filled(4).Get_count(empty) == filled(4).Get_elements(empty) == UNDEFINED


def test_set_elements() -> None:
    status = Status()
    status.Set_elements(INT, 3)
    assert status.count == 12
    status.count = 5
    assert status.count == 5


def test_memory_is_the_status() -> None:
    status = filled(8)
    memory = status.tomemory()
    assert memory.format == "i" and len(memory) == F_STATUS_SIZE
    memory[F_SOURCE], memory[F_TAG], memory[F_ERROR] = 11, 22, 33
    assert (status.source, status.tag, status.error) == (11, 22, 33)
    cell = (ctypes.c_int * F_STATUS_SIZE).from_address(handles._addressof(status))
    assert list(cell) == status.py2f()
    assert handles._handleof(status) == handles._addressof(status)


@pytest.mark.parametrize(
    ("code", "call"),
    [
        (ERR_TYPE, lambda: Status().Get_count(DATATYPE_NULL)),
        (ERR_TYPE, lambda: Status().Get_elements(DATATYPE_NULL)),
        (ERR_TYPE, lambda: Status().Set_elements(DATATYPE_NULL, 0)),
        (ERR_COUNT, lambda: Status().Set_elements(BYTE, -1)),
        (ERR_ARG, lambda: Status().Set_elements(DOUBLE, 2**60)),
    ],
)
def test_errors(code, call) -> None:
    with pytest.raises(MPIException) as caught:
        call()
    assert caught.value.Get_error_class() == code


@pytest.mark.parametrize(
    ("kind", "call"),
    [
        (TypeError, lambda: Status(123)),
        (TypeError, lambda: Status("abc")),
        (TypeError, lambda: Status().Get_count(None)),
        (TypeError, lambda: Status().Set_source("a")),
        (OverflowError, lambda: Status().Set_tag(2**40)),
        (TypeError, lambda: hash(Status())),
        (TypeError, lambda: Status() < Status()),
        (IndexError, lambda: Status.f2py([1, 2])),
    ],
)
def test_wrong_arguments(kind, call) -> None:
    with pytest.raises(kind):
        call()


@pytest.mark.parametrize("count", range(0, 20))
def test_elements_are_basic_ones(count: int) -> None:
    from pysmpi.mpi import MPI

    six = MPI.INT.Create_contiguous(6)
    mixed = MPI.Datatype.Create_struct([2, 1], [0, 16], [MPI.INT, MPI.DOUBLE])
    for datatype, members in (six, 6), (mixed, 3), (mixed.Create_contiguous(2), 6):
        status = Status()
        status.Set_elements(datatype, count)
        assert status.Get_elements(datatype) == count
        partial = count % members
        assert status.Get_count(datatype) == (MPI.UNDEFINED if partial else count // members)
