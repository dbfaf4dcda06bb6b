"""Datatype handles: queries, constructors, decoding, names, attributes, pickling."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pysmpi.mpi.base import constants as c
from pysmpi.mpi.base.exceptions import Exception as MPIException
from pysmpi.mpi.datatypes import datatypes as d
from pysmpi.mpi.datatypes.datatypes import Datatype

INT, DOUBLE, CHAR = d.INT, d.DOUBLE, d.CHAR

pytestmark = pytest.mark.usefixtures("own_rank")


def error_class(call):
    with pytest.raises(MPIException) as caught:
        call()
    return caught.value.Get_error_class()


def test_there_are_91_names():
    assert len(d.PREDEFINED) == 91
    assert d.TWOINT is d.INT_INT and d.C_FLOAT_COMPLEX is d.C_COMPLEX
    assert not d.INTEGER16 and d.INTEGER16 == d.DATATYPE_NULL and d.INTEGER16 is not d.LOGICAL1


@pytest.mark.parametrize("name", sorted(d.PREDEFINED))
def test_predefined(name):
    datatype = d.PREDEFINED[name]
    if not datatype:
        assert error_class(datatype.Get_size) == c.ERR_TYPE
        return
    assert datatype.is_named and datatype.is_predefined
    assert datatype.decode() == (datatype, "NAMED", {})
    assert datatype.extent >= datatype.size > 0
    assert error_class(datatype.Free) == c.ERR_TYPE
    assert error_class(datatype.Get_contents) == c.ERR_TYPE
    assert Datatype.fromint(datatype.toint()) == datatype
    if datatype.typechar != "V":
        code = datatype.tocode()
        assert Datatype.fromcode(code).typestr == datatype.typestr
        assert np.dtype(datatype.typestr).itemsize == datatype.size


def test_sizes_of_pairs_are_those_of_c_structures():
    sizes = {
        name: (d.PREDEFINED[name].size, d.PREDEFINED[name].extent, d.PREDEFINED[name].true_extent)
        for name in ("SHORT_INT", "INT_INT", "LONG_INT", "DOUBLE_INT", "LONG_DOUBLE_INT")
    }
    assert sizes == {
        "SHORT_INT": (6, 8, 8),
        "INT_INT": (8, 8, 8),
        "LONG_INT": (12, 16, 12),
        "DOUBLE_INT": (12, 16, 12),
        "LONG_DOUBLE_INT": (20, 32, 20),
    }


CONSTRUCTORS = [
    ("CONTIGUOUS", {"count": 3}),
    ("VECTOR", {"count": 3, "blocklength": 2, "stride": 4}),
    ("HVECTOR", {"count": 3, "blocklength": 2, "stride": 17}),
    ("INDEXED", {"blocklengths": [1, 2], "displacements": [3, 9]}),
    ("HINDEXED", {"blocklengths": [1, 2], "displacements": [3, 90]}),
    ("INDEXED_BLOCK", {"blocklength": 2, "displacements": [3, 9]}),
    ("HINDEXED_BLOCK", {"blocklength": 2, "displacements": [3, 90]}),
    ("SUBARRAY", {"sizes": [4, 5], "subsizes": [2, 3], "starts": [1, 1], "order": c.ORDER_F}),
    (
        "DARRAY",
        {
            "size": 4,
            "rank": 2,
            "gsizes": [5, 6],
            "distribs": [c.DISTRIBUTE_BLOCK] * 2,
            "dargs": [c.DISTRIBUTE_DFLT_DARG] * 2,
            "psizes": [2, 2],
            "order": c.ORDER_C,
        },
    ),
    ("RESIZED", {"lb": -3, "extent": 40}),
    ("DUP", {}),
]


@pytest.mark.parametrize("name, arguments", CONSTRUCTORS)
def test_decode_gives_what_was_given(name, arguments, as_mpi4py):
    made = getattr(DOUBLE, f"Create_{name.lower()}")(**arguments)
    base, combiner, decoded = made.decode()
    assert (base, combiner, decoded) == (DOUBLE, name, arguments)
    assert made.combiner == getattr(c, f"COMBINER_{name}")
    numbers, addresses, counts, types = made.Get_contents()
    assert made.Get_envelope()[:4] == (len(numbers), len(addresses), len(counts), len(types))
    again = pickle.loads(pickle.dumps(made))
    assert again.decode()[1:] == (name, arguments)
    assert (again.size, again.Get_extent()) == (made.size, made.Get_extent())
    made.Free()
    assert not made


def test_struct():
    made = Datatype.Create_struct([1, 2], [0, 8], [DOUBLE, CHAR])
    assert (made.size, made.extent, made.true_extent) == (10, 16, 10)
    base, combiner, arguments = made.decode()
    assert base == d.DATATYPE_NULL and combiner == "STRUCT"
    assert arguments["datatypes"] == [DOUBLE, CHAR]
    with pytest.raises(ValueError):
        Datatype.Create_struct([1], [0], [INT, INT])
    with pytest.raises(TypeError):
        Datatype.Create_struct([1], [0], [3])


def test_parametrized_types():
    real = Datatype.Create_f90_real(15, 300)
    assert (real.size, real.tocode(), real.typechar) == (8, "f8", "d")
    assert real == Datatype.Create_f90_real(15, 300) != Datatype.Create_f90_real(14, 300)
    assert real.is_predefined and not real.is_named
    assert real.decode() == (d.DATATYPE_NULL, "F90_REAL", {"p": 15, "r": 300})
    assert [Datatype.Create_f90_integer(r).size for r in (2, 4, 9, 18)] == [1, 2, 4, 8]
    assert Datatype.Create_f90_complex(6, 30).typestr == "c8"
    assert error_class(real.Free) == c.ERR_TYPE


def test_match_size_and_pairs():
    assert Datatype.Match_size(c.TYPECLASS_REAL, 8) == d.REAL8
    assert error_class(lambda: Datatype.Match_size(c.TYPECLASS_REAL, 5)) == c.ERR_ARG
    assert Datatype.Get_value_index(DOUBLE, INT) == d.DOUBLE_INT
    assert Datatype.Get_value_index(DOUBLE, DOUBLE) == d.DATATYPE_NULL
    assert error_class(lambda: Datatype.Get_value_index(d.DATATYPE_NULL, INT)) == c.ERR_TYPE


def test_names_belong_to_the_handle_of_a_rank(own_rank):
    made = INT.Create_contiguous(2)
    assert made.name == "" and INT.name == "MPI_INT"
    assert d.DATATYPE_NULL.name == "MPI_DATATYPE_NULL"
    made.name = "pair"
    INT.name = "whole"
    assert (made.Get_name(), INT.Get_name()) == ("pair", "whole")


def test_attributes_are_copied_and_deleted():
    log = []
    key = Datatype.Create_keyval(
        lambda datatype, key, value: value + 1, lambda datatype, key, value: log.append(value)
    )
    made = INT.Create_vector(2, 1, 3)
    made.Set_attr(key, 7)
    copy = made.Dup()
    assert (made.Get_attr(key), copy.Get_attr(key)) == (7, 8)
    made.Free()
    copy.Delete_attr(key)
    assert log == [7, 8] and copy.Get_attr(key) is None
    copy.Free()
    Datatype.Free_keyval(key)


def test_wrong_arguments():
    with pytest.raises(TypeError):
        Datatype(3)
    with pytest.raises(TypeError):
        INT.Create_contiguous("1")
    with pytest.raises(TypeError):
        INT.Create_indexed(1, [2])
    with pytest.raises(ValueError):
        INT.Create_indexed([1, 2], [0])
    with pytest.raises(ValueError):
        Datatype.fromcode("nonsense")
    with pytest.raises(ValueError):
        d.INT_INT.tocode()
    assert error_class(lambda: INT.Create_contiguous(-2)) == c.ERR_COUNT
    assert error_class(d.DATATYPE_NULL.Dup) == c.ERR_TYPE


def test_freed_parts_live_on_in_what_was_made_of_them():
    row = INT.Create_vector(3, 1, 4)
    matrix = row.Create_resized(0, 4).Commit()
    row.Free()
    assert (matrix.size, matrix.extent) == (12, 4)
    again, _, _ = matrix.decode()
    assert again.combiner == c.COMBINER_VECTOR
    again.Free()
    assert matrix.decode()[0].size == 12


@pytest.mark.parametrize(
    "wrap",
    [
        lambda t: t,
        lambda t: t.Dup(),
        lambda t: t.Create_contiguous(1),
        lambda t: t.Dup().Create_contiguous(1).Dup(),
    ],
)
def test_a_struct_of_one_type_needs_no_padding(wrap: Callable[[Any], Any]) -> None:
    """As in MPICH, also if members are duplicates, or one element, of the type."""
    for kind in (DOUBLE, INT.Create_vector(2, 1, 3)):
        width = kind.extent
        ends = [
            type(kind).Create_struct([1, 1], [0, width + 1], [kind, other]).extent
            for other in (wrap(kind), kind.Create_contiguous(2), kind)
        ]
        assert ends[0] == ends[2] == 2 * width + 1
        assert ends[1] % 4 == 0  # these are not of one type
