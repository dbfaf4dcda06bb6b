"""Layouts against a naive interpreter of typemaps."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pysmpi.mpi.base import constants as c
from pysmpi.mpi.datatypes import records as t
from pysmpi.mpi.datatypes.copy_plans import IrregularBlocks, Run
from pysmpi.mpi.datatypes.layouts import EMPTY, members

BASICS = ("INT8_T", "SHORT", "INT", "DOUBLE", "LONG_DOUBLE", "C_DOUBLE_COMPLEX")


class Map:
    """A typemap written out: (size, displacement) of each member, and the bounds."""

    def __init__(self, entries, lb=0, ub=0, empty=False):
        self.entries = entries
        self.lb, self.ub = lb, ub
        self.empty = empty
        self.origin = object()  # equal for datatypes that MPICH treats as one

    @property
    def extent(self):
        return self.ub - self.lb

    def at(self, displacement):
        return Map(
            [(s, d + displacement) for s, d in self.entries],
            self.lb + displacement,
            self.ub + displacement,
            self.empty,
        )

    def bytes(self):
        return [d + k for s, d in self.entries for k in range(s)]


def together(maps):
    maps = [m for m in maps if not m.empty]
    if not maps:
        return Map([], empty=True)
    return Map(
        [e for m in maps for e in m.entries], min(m.lb for m in maps), max(m.ub for m in maps)
    )


def copies(base, displacements):
    return together([base.at(d) for d in displacements])


def resized(base, lb, extent):
    return Map(base.entries, lb, lb + extent)


small = st.integers(0, 3)


def basic(name):
    size = t.PREDEFINED[name].layout.size
    naive = Map([(size, 0)], 0, size)
    naive.origin = name
    return t.PREDEFINED[name], naive


basics = st.sampled_from(BASICS).map(basic)


@st.composite
def derived(draw, children):
    record, base = draw(children)
    ext = base.extent
    kind = draw(
        st.sampled_from(
            (
                "contiguous",
                "vector",
                "hvector",
                "indexed",
                "hindexed",
                "block",
                "struct",
                "subarray",
                "darray",
                "resized",
                "dup",
            )
        )
    )
    if kind == "contiguous":
        n = draw(small)
        made = copies(base, [i * ext for i in range(n)])
        if n == 1:
            made.origin = base.origin
        return t.contiguous(record, n), made
    if kind in ("vector", "hvector"):
        n, length, stride = draw(small), draw(small), draw(st.integers(-4, 30))
        step = stride * ext if kind == "vector" else stride
        return (
            t.vector(record, n, length, stride, in_bytes=kind == "hvector"),
            copies(base, [i * step + j * ext for i in range(n) for j in range(length)]),
        )
    if kind in ("indexed", "hindexed", "block"):
        n = draw(st.one_of(small, st.integers(8, 12)))
        where = draw(st.lists(st.integers(-5, 25), min_size=n, max_size=n))
        lengths = draw(st.lists(small, min_size=n, max_size=n))
        if kind == "block":
            lengths = [draw(small)] * n
            made = t.indexed_block(record, lengths[0] if n else 1, where)
        else:
            made = t.indexed(record, lengths, where, in_bytes=kind == "hindexed")
        scale = 1 if kind == "hindexed" else ext
        return made, copies(
            base, [d * scale + j * ext for d, k in zip(where, lengths) for j in range(k)]
        )
    if kind == "struct":
        parts = [(record, base), draw(children), draw(children)][: draw(st.integers(1, 3))]
        lengths = [draw(small) for _ in parts]
        where = [draw(st.integers(-10, 60)) for _ in parts]
        made = t.struct(lengths, where, [p[0] for p in parts])
        whole = together(
            [
                copies(m, [d + j * m.extent for j in range(n)])
                for (_, m), n, d in zip(parts, lengths, where)
            ]
        )
        excess = whole.extent % made.layout.align
        if excess and any(p[1].origin != base.origin for p in parts):
            whole.ub += made.layout.align - excess
        return made, whole
    if kind == "resized":
        lb, extent = draw(st.integers(-9, 9)), draw(st.integers(1, 40))
        return t.resized(record, lb, extent), resized(base, lb, extent)
    if kind == "dup":
        return t.duplicate(record), base
    ndims = draw(st.integers(1, 3))
    order = draw(st.sampled_from((c.ORDER_C, c.ORDER_FORTRAN)))
    if kind == "subarray":
        sizes = [draw(st.integers(1, 4)) for _ in range(ndims)]
        subsizes = [draw(st.integers(1, s)) for s in sizes]
        starts = [draw(st.integers(0, s - k)) for s, k in zip(sizes, subsizes)]
        made = t.subarray(record, sizes, subsizes, starts, order)
        owned = [range(s, s + k) for s, k in zip(starts, subsizes)]
    else:
        grid = [draw(st.integers(1, 2)) for _ in range(ndims)]
        sizes = [draw(st.integers(1, 5)) for _ in range(ndims)]
        coords = [draw(st.integers(0, p - 1)) for p in grid]
        distribs, dargs, owned = [], [], []
        for size, p, at in zip(sizes, grid, coords):
            if p == 1 and draw(st.booleans()):
                distribs.append(c.DISTRIBUTE_NONE)
                dargs.append(c.DISTRIBUTE_DFLT_DARG)
                owned.append(range(size))
                continue
            block = draw(st.sampled_from((None, 1, 2, 3)))
            cyclic = draw(st.booleans()) or (block is not None and block * p < size)
            distribs.append(c.DISTRIBUTE_CYCLIC if cyclic else c.DISTRIBUTE_BLOCK)
            dargs.append(c.DISTRIBUTE_DFLT_DARG if block is None else block)
            if cyclic:
                owned.append([i for i in range(size) if i // (block or 1) % p == at])
            else:
                owned.append([i for i in range(size) if i // (block or -(-size // p)) == at])
        rank = 0
        for p, at in zip(grid, coords):
            rank = rank * p + at
        made = t.darray(record, prod(grid), rank, sizes, distribs, dargs, grid, order)
    strides = [
        prod(sizes[i + 1 :]) if order == c.ORDER_C else prod(sizes[:i]) for i in range(ndims)
    ]
    loops = list(zip(owned, strides))
    if order == c.ORDER_FORTRAN:
        loops.reverse()
    places = [0]
    for indices, stride in loops:
        places = [p + i * stride for p in places for i in indices]
    return made, resized(copies(base, [p * ext for p in places]), 0, prod(sizes) * ext)


types = st.recursive(basics, derived, max_leaves=4)


@settings(max_examples=300, deadline=None)
@given(types)
def test_bounds_are_those_of_the_typemap(pair):
    record, naive = pair
    layout = record.layout
    assert layout.size == sum(s for s, _ in naive.entries)
    assert (layout.lb, layout.ub) == (naive.lb, naive.ub)
    if naive.entries:
        assert layout.true_lb == min(d for _, d in naive.entries)
        assert layout.true_ub == max(s + d for s, d in naive.entries)
    basic = [s for s, _ in naive.entries]
    assert members(layout.signature) == len(basic)


@settings(max_examples=300, deadline=None)
@given(types, st.integers(1, 3))
def test_pack_reads_and_unpack_writes_exactly_the_typemap(pair, count):
    record, naive = pair
    layout = record.layout
    where = [d + i * naive.extent for i in range(count) for d in naive.bytes()]
    low, high = min(where, default=0), max(where, default=0) + 1
    origin = 5 - low
    memory = np.random.default_rng(1).integers(0, 256, high - low + 10).astype(np.uint8)
    plan = layout.plan(count)
    assert plan.nbytes == len(where)
    stream = bytearray(plan.nbytes)
    plan.pack(memory, origin, stream)
    assert list(stream) == [memory[origin + w] for w in where]

    target = np.zeros(len(memory), np.uint8)
    marks = np.frombuffer(bytes((i % 255) + 1 for i in range(len(where))), np.uint8)
    plan.unpack(target, origin, marks)
    touched = {origin + w for w in where}
    assert all(target[i] == 0 for i in range(len(target)) if i not in touched)
    if len(touched) == len(where):
        plan.pack(target, origin, stream)
        assert bytes(stream) == marks.tobytes()


@settings(max_examples=100, deadline=None)
@given(types, st.data())
def test_a_short_stream_fills_the_first_members(pair, data):
    record, naive = pair
    where = naive.bytes()
    if not where or len(set(where)) != len(where):
        return
    nbytes = data.draw(st.integers(0, len(where)))
    low = min(where)
    target = np.zeros(max(where) - low + 1, np.uint8)
    record.layout.plan(1).unpack_some(target, -low, b"\x07" * nbytes, nbytes)
    assert {i for i, v in enumerate(target) if v} == {w - low for w in where[:nbytes]}


def test_regular_types_are_one_run():
    double = t.PREDEFINED["DOUBLE"]
    column = t.vector(double, 100, 1, 50)
    assert column.layout.parts == (Run(0, 0, 8, ((100, 400, 8),)),)
    face = t.subarray(double, [20, 20, 20], [10, 10, 10], [5, 5, 5], c.ORDER_C)
    (run,) = face.layout.parts
    assert run.length == 80 and len(run.dims) == 2
    assert t.contiguous(face, 1000).layout.parts[0].dims[0] == (1000, 64000, 8000)
    assert t.contiguous(t.contiguous(double, 10), 10).layout.dense
    whole = t.subarray(double, [4, 4], [4, 4], [0, 0], c.ORDER_FORTRAN)
    assert whole.layout.dense


def test_irregular_types_are_one_index_however_often_repeated():
    double = t.PREDEFINED["DOUBLE"]
    where = [i * i for i in range(50)]
    scattered = t.indexed_block(double, 2, where)
    (part,) = scattered.layout.parts
    assert isinstance(part, IrregularBlocks)
    (repeated,) = t.contiguous(scattered, 1000).layout.parts
    assert len(repeated.offsets) == len(part.offsets)
    assert scattered.layout.size == 50 * 16
    # Equally spaced displacements are recognised as a vector.
    assert isinstance(t.indexed_block(double, 1, range(0, 300, 3)).layout.parts[0], Run)


def test_long_blocks_are_copied_without_an_index():
    byte = t.BYTE
    record = t.indexed(byte, [1000] * 20, [i * i * 1001 for i in range(20)])
    plan = record.layout.plan(1)
    assert len(plan.moves) == 20
    memory = np.random.default_rng(1).integers(0, 256, record.layout.true_ub, np.uint8)
    stream, back = bytearray(plan.nbytes), bytearray(len(memory))
    plan.pack(memory.data, 0, stream)
    where = [slice(i * i * 1001, i * i * 1001 + 1000) for i in range(20)]
    assert stream == b"".join(memory[block].tobytes() for block in where)
    plan.unpack(back, 0, stream)
    assert all(back[block] == memory[block].tobytes() for block in where)


def test_empty_types():
    double = t.PREDEFINED["DOUBLE"]
    for record in (
        t.contiguous(double, 0),
        t.vector(double, 3, 0, 2),
        t.struct([], [], []),
        t.indexed(double, [0, 0], [1, 2]),
        t.vector(t.contiguous(double, 0), 3, 2, 1),
    ):
        assert record.layout is EMPTY
    kept = t.resized(t.contiguous(double, 0), -4, 12)
    assert (kept.layout.lb, kept.layout.extent, kept.layout.size) == (-4, 12, 0)
    assert t.contiguous(kept, 3).layout.extent == 36


@pytest.mark.parametrize(
    "make, error",
    [
        (lambda r: t.contiguous(r, -1), c.ERR_COUNT),
        (lambda r: t.vector(r, 2, -1, 1), c.ERR_COUNT),
        (lambda r: t.indexed(r, [1, -1], [0, 0]), c.ERR_COUNT),
        (lambda r: t.subarray(r, [4], [5], [0], c.ORDER_C), c.ERR_ARG),
        (lambda r: t.subarray(r, [4], [2], [3], c.ORDER_C), c.ERR_ARG),
        (lambda r: t.subarray(r, [], [], [], c.ORDER_C), c.ERR_ARG),
        (lambda r: t.subarray(r, [4], [2], [0], 3), c.ERR_ARG),
        (lambda r: t.darray(r, 2, 2, [4], [c.DISTRIBUTE_BLOCK], [1], [2], c.ORDER_C), c.ERR_RANK),
        (lambda r: t.darray(r, 2, 0, [4], [c.DISTRIBUTE_BLOCK], [1], [2], c.ORDER_C), c.ERR_ARG),
        (lambda r: t.darray(r, 2, 0, [4], [c.DISTRIBUTE_NONE], [1], [2], c.ORDER_C), c.ERR_ARG),
        (lambda r: t.darray(r, 2, 0, [4], [5], [1], [2], c.ORDER_C), c.ERR_ARG),
        (lambda r: t.darray(r, 4, 0, [4], [c.DISTRIBUTE_BLOCK], [1], [2], c.ORDER_C), c.ERR_ARG),
        (lambda r: t.f90_real(40, 30), c.ERR_OTHER),
        (lambda r: t.f90_integer(40), c.ERR_OTHER),
        (lambda r: t.match_size(9, 4), c.ERR_ARG),
        (lambda r: t.match_size(c.TYPECLASS_REAL, 3), c.ERR_ARG),
    ],
)
def test_wrong_arguments(make, error):
    from pysmpi.mpi.base.exceptions import Exception as MPIException

    with pytest.raises(MPIException) as caught:
        make(t.PREDEFINED["INT"])
    assert caught.value.Get_error_class() == error
    assert caught.value.detail
