"""Reduction operations on memory, on packed streams and on Python objects."""

from __future__ import annotations

import pickle
from fractions import Fraction
from functools import reduce

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pysmpi.mpi.base import constants as c
from pysmpi.mpi.base.exceptions import Exception as MPIException
from pysmpi.mpi.datatypes import datatypes as d
from pysmpi.mpi.datatypes import quad_precision as quads
from pysmpi.mpi.operators import arithmetic as reductions
from pysmpi.mpi.operators import operators as ops
from pysmpi.mpi.operators.arithmetic import OPERATORS
from pysmpi.mpi.operators.operators import Op

pytestmark = pytest.mark.usefixtures("own_rank")

NUMPY = {
    "MAX": np.maximum,
    "MIN": np.minimum,
    "SUM": np.add,
    "PROD": np.multiply,
    "LAND": np.logical_and,
    "LOR": np.logical_or,
    "LXOR": np.logical_xor,
    "BAND": np.bitwise_and,
    "BOR": np.bitwise_or,
    "BXOR": np.bitwise_xor,
}
# MPI 4.1, section 6.9.2; MPICH lets characters take part as integers.
KINDS = {
    "integer": "MAX MIN SUM PROD LAND BAND LOR BOR LXOR BXOR",
    "multi": "MAX MIN SUM PROD LAND BAND LOR BOR LXOR BXOR",
    "fortran": "MAX MIN SUM PROD BAND BOR BXOR",
    "real": "MAX MIN SUM PROD",
    "complex": "SUM PROD",
    "logical": "LAND LOR LXOR",
    "byte": "BAND BOR BXOR",
    "pair": "MAXLOC MINLOC",
    "char": "",
    "packed": "",
}


def named():
    return [name for name, datatype in d.PREDEFINED.items() if datatype]


def numbers(dtype, n, seed=0):
    rng = np.random.default_rng(seed)
    if dtype.kind == "c":
        return (rng.integers(-9, 9, n) + 1j * rng.integers(-9, 9, n)).astype(dtype)
    return rng.integers(0, 2 if dtype.kind == "b" else 9, n).astype(dtype)


@pytest.mark.parametrize("name", named())
@pytest.mark.parametrize("operation", sorted(NUMPY))
def test_predefined_operations(name, operation):
    datatype = d.PREDEFINED[name]
    record = datatype._live()
    op = ops.PREDEFINED[operation]
    size = datatype.extent * 5
    if operation not in KINDS[record.kind].split():
        with pytest.raises(MPIException) as caught:
            op.Reduce_local([bytes(size), 5, datatype], [bytearray(size), 5, datatype])
        assert caught.value.Get_error_class() == c.ERR_OP
        return
    if record.dtype is None:
        return  # binary128, below
    x, y = numbers(record.dtype, 5), numbers(record.dtype, 5, 1)
    expected = NUMPY[operation](x, y).astype(record.dtype)
    op.Reduce_local([x, 5, datatype], [y, 5, datatype])
    assert np.array_equal(y, expected)


@pytest.mark.parametrize(
    "name", ["SHORT_INT", "INT_INT", "LONG_INT", "FLOAT_INT", "DOUBLE_INT", "LONG_DOUBLE_INT"]
)
def test_locations(name):
    datatype = d.PREDEFINED[name]
    dtype = datatype._live().dtype
    rng = np.random.default_rng(3)
    x, y = np.zeros(40, dtype), np.zeros(40, dtype)
    for pairs in (x, y):
        pairs["value"], pairs["index"] = rng.integers(-3, 3, 40), rng.integers(0, 9, 40)
    for op, best in ((ops.MAXLOC, max), (ops.MINLOC, min)):
        expected = []
        for a, b in zip(x.tolist(), y.tolist()):
            value = best(a[0], b[0])
            expected.append((value, min(i for v, i in (a, b) if v == value)))
        got = y.copy()
        op.Reduce_local([x, 40, datatype], [got, 40, datatype])
        assert got.tolist() == expected
        record = datatype._live()
        packed = [bytearray(40 * datatype.size) for _ in range(2)]
        for stream, pairs in zip(packed, (x, y)):
            record.layout.plan(40).pack(pairs.view(np.uint8), 0, stream)
        out = np.zeros(40, dtype)
        result = reductions.reduce(op._live(), packed, 40, record)
        record.layout.plan(40).unpack(out.view(np.uint8), 0, result)
        assert out.tolist() == expected


@settings(deadline=None)
@given(
    st.sampled_from(sorted(set(NUMPY) - {"LAND", "LOR", "LXOR"})),
    st.integers(1, 6),
    st.sampled_from((0, 1, 2, 7, 20000)),
)
def test_folds_go_from_left_to_right(operation, ranks, count):
    operator, record = OPERATORS[operation], d.INT._live()
    rows = [numbers(np.dtype("i4"), count, seed) for seed in range(ranks)]
    streams = [row.tobytes() for row in rows]
    expected = [
        row.tobytes() for row in [reduce(NUMPY[operation], rows[: i + 1]) for i in range(ranks)]
    ]
    assert reductions.reduce(operator, streams, count, record) == expected[-1]
    assert reductions.prefixes(operator, streams, count, record) == expected
    assert streams == [row.tobytes() for row in rows]


@pytest.mark.parametrize("count", [1, 2, 100000])
def test_sums_of_floats_do_not_depend_on_the_count(count):
    rng = np.random.default_rng(0)
    columns = rng.standard_normal(37) * 10.0 ** rng.integers(-9, 9, 37)
    expected = 0.0
    for value in columns:
        expected += value
    result = reductions.reduce(
        OPERATORS["SUM"], [np.full(count, v).tobytes() for v in columns], count, d.DOUBLE._live()
    )
    assert (np.frombuffer(result) == expected).all()


def test_logical_results_are_zero_and_one():
    x, y = np.array([0, 5, 7], "i4"), np.array([0, 0, 9], "i4")
    streams = [x.tobytes(), y.tobytes()]
    for operation, expected in (("LAND", [0, 0, 1]), ("LOR", [0, 1, 1]), ("LXOR", [0, 1, 0])):
        result = reductions.reduce(OPERATORS[operation], streams, 3, d.INT._live())
        assert np.frombuffer(result, "i4").tolist() == expected


def compose(inbuf, inoutbuf, datatype):
    """(a, b) stands for x -> a x + b: composition is associative, but does not commute."""
    assert datatype == compose.datatype
    assert len(inbuf) == len(inoutbuf) == compose.nbytes
    step = compose.step
    x, y = (np.frombuffer(buf, "i8").reshape(-1, step) for buf in (inbuf, inoutbuf))
    y[:, :2] = np.stack((x[:, 0] * y[:, 0], x[:, 1] * y[:, 0] + y[:, 1]), axis=1)


@pytest.mark.parametrize("step", [2, 3])
def test_user_functions(step):
    pair = d.LONG.Create_contiguous(2)
    datatype = pair.Create_resized(0, 8 * step).Commit()
    compose.datatype, compose.nbytes, compose.step = datatype, 4 * 8 * step, step
    op = Op.Create(compose, commute=False)
    rows = [numbers(np.dtype("i8"), 8, seed) for seed in range(5)]
    results = reductions.prefixes(op._live(), [row.tobytes() for row in rows], 4, datatype._live())
    running = rows[0].reshape(4, 2)
    for row, result in zip(rows[1:], results[1:]):
        row = row.reshape(4, 2)
        running = np.stack((running[:, 0] * row[:, 0], running[:, 1] * row[:, 0] + row[:, 1]), 1)
        assert np.array_equal(np.frombuffer(result, "i8").reshape(4, 2), running)
    assert not op.is_commutative and not op.is_predefined
    op.Free()
    assert op == ops.OP_NULL


def test_an_exception_in_a_user_function_ends_the_program(capfd):
    op = Op.Create(lambda x, y, datatype: 1 // 0)
    with pytest.raises(SystemExit):
        op.Reduce_local(np.zeros(2), np.zeros(2))
    assert "ZeroDivisionError" in capfd.readouterr().err
    op.Free()


def test_user_operations_are_limited_and_copied():
    made = [Op.Create(lambda x, y, datatype: x + y) for _ in range(ops.MAX_USER_OPERATIONS)]
    with pytest.raises(RuntimeError):
        Op.Create(max)
    with pytest.raises(AttributeError):
        Op.Create(3)
    assert Op(made[0])(2, 3) == 5
    stranger = Op.fromint(made[0].toint())
    assert stranger == made[0]
    with pytest.raises(ValueError):
        stranger(2, 3)
    for op in made:
        op.Free()
    Op.Create(max).Free()


def test_objects(as_mpi4py):
    assert [
        ops.PREDEFINED[name](6, 3)
        for name in ("MAX", "MIN", "SUM", "PROD", "BAND", "BOR", "BXOR", "REPLACE", "NO_OP")
    ] == [6, 3, 9, 18, 2, 7, 5, 3, 6]
    assert (ops.LAND(1, 0), ops.LOR(2, 0), ops.LXOR(2, 3)) == (False, True, False)
    assert ops.MAXLOC((1, 5), (1, 2)) == (1, 2) and ops.MINLOC((1, 5), (2, 0)) == (1, 5)
    with pytest.raises(ValueError):
        ops.OP_NULL(1, 2)
    assert pickle.loads(pickle.dumps(ops.SUM)) is ops.SUM
    again = pickle.loads(pickle.dumps(Op.Create(compose, True)))
    assert again.is_commutative
    for op in (ops.REPLACE, ops.NO_OP):
        assert not op.is_commutative and op.is_predefined
    with pytest.raises(MPIException):
        ops.SUM.Free()


def test_mismatched_buffers():
    with pytest.raises(ValueError):
        ops.SUM.Reduce_local(np.zeros(2), np.zeros(3))
    with pytest.raises(ValueError):
        ops.SUM.Reduce_local(np.zeros(2), np.zeros(2, "i8"))
    with pytest.raises(MPIException):
        ops.OP_NULL.Reduce_local(np.zeros(2), np.zeros(2))
    with pytest.raises(MPIException):
        ops.REPLACE.Reduce_local(np.zeros(2), np.zeros(2))


def test_elements_of_accumulate_operations():
    assert reductions.element(d.DOUBLE.Create_vector(3, 1, 2)._live()) is d.DOUBLE._live()
    mixed = d.Datatype.Create_struct([1, 1], [0, 8], [d.DOUBLE, d.INT])
    assert reductions.element(mixed._live()) is None
    assert reductions.element(d.DOUBLE_INT._live()) is d.DOUBLE_INT._live()
    source = np.arange(3.0)
    room = bytearray(24)
    reductions.combine(OPERATORS["REPLACE"], source.tobytes(), room, 3, d.DOUBLE._live())
    assert room == source.tobytes()
    reductions.combine(OPERATORS["NO_OP"], bytes(24), room, 3, d.DOUBLE._live())
    assert room == source.tobytes()


def quad(value):
    return quads.encode(Fraction(value))


@settings(deadline=None)
@given(st.fractions(), st.fractions())
def test_quads_hold_doubles_exactly_and_add_what_they_hold(x, y):
    a, b = float(x), float(y)
    assert quads.decode(quad(a))[0] == Fraction(a)
    room = bytearray(quad(b))
    quads.combine("SUM", quad(a), room, False)
    exact = Fraction(a) + Fraction(b)
    got = quads.decode(room)[0]
    assert abs(got - exact) <= abs(exact) / 2**113


def test_quads_round_to_nearest_even_and_know_the_special_numbers():
    one, ulp = Fraction(1), Fraction(1, 2**112)
    for addend, expected in ((ulp, one + ulp), (ulp / 2, one), (ulp * 3 / 4, one + ulp)):
        room = bytearray(quad(addend))
        quads.combine("SUM", quad(1), room, False)
        assert quads.decode(room)[0] == expected
    infinity = quads.encode(float("inf"))
    assert infinity.hex()[-4:] == "ff7f"
    room = bytearray(quad(-2))
    quads.combine("PROD", infinity, room, False)
    assert quads.decode(room)[0] == float("-inf")
    quads.combine("SUM", infinity, room, False)
    assert quads.decode(room)[0] != quads.decode(room)[0]
    largest = (2 - ulp) * Fraction(2) ** 16383
    room = bytearray(quad(largest))
    quads.combine("SUM", quad(largest), room, False)
    assert quads.decode(room)[0] == float("inf")
    tiny = Fraction(1, 2**16494)
    assert quads.decode(quad(tiny))[0] == tiny and quads.decode(quad(tiny / 2))[0] == 0
    room = bytearray(quad(3) + quad(4))
    quads.combine("PROD", quad(1) + quad(2), room, True)
    assert [quads.decode(room[i : i + 16])[0] for i in (0, 16)] == [-5, 10]


@pytest.mark.parametrize(
    ("name", "datatype"),
    [("SUM", d.DOUBLE), ("PROD", d.FLOAT), ("MAX", d.INT16_T), ("LXOR", d.INT), ("BAND", d.BYTE)],
)
def test_long_contributions_are_combined_in_the_order_of_ranks(name, datatype):
    """Bit for bit, in all chunks and in the shorter last one."""
    record = datatype._live()
    count = 2 * (reductions.CHUNK // record.dtype.itemsize) + 3
    random = np.random.default_rng(7)
    rows = [(random.random(count) * 200 - 100).astype(record.dtype) for _ in range(5)]
    before = [row.tobytes() for row in rows]
    expected = rows[0]
    for row in rows[1:]:
        expected = NUMPY[name](row, expected).astype(record.dtype)
    streams = [memoryview(row).cast("B") for row in rows]
    found = reductions.reduce(OPERATORS[name], streams, count, record)
    assert found == expected.tobytes()
    assert [row.tobytes() for row in rows] == before
