"""The layout of a datatype in memory, flattened to a few strided runs.

An MPI datatype is a *typemap*: a sequence of (basic type, byte displacement).
A `Layout` stores the same information as a few `Run` and `IrregularBlocks`. Each of them has the
offsets of its bytes in memory and in the packed stream. Because both are stored, repeating a layout
only adds one dimension to each of its parts, also for irregular layouts. `copy_plans.py` copies the
parts.

Lower and upper bounds follow MPI 4.1 section 5.1; the padding of structures to their alignment
(the epsilon of equation 5.1) follows the C compiler of x86-64 and AArch64, as MPICH does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from math import prod
from typing import Any

import numpy as np

from pysmpi.mpi.datatypes.copy_plans import CopyPlan, Dimension, IrregularBlocks, Run, RunOrBlocks

# Contents of the packed stream: items of (count, basic type) or (count, nested signature).
Signature = tuple[tuple[int, Any], ...]

# Fewer scattered blocks than this are left as single runs: an index array would not pay.
FEW_BLOCKS = 8
# The largest number of cached plans of a layout, for the counts of a program.
MOST_PLANS = 16


class Layout:
    """The flattened typemap of a datatype.

    `size` is the number of data bytes, `lb` and `ub` the bounds of the datatype, `true_lb` and
    `true_ub` those of its data, `align` the alignment of its strictest member, all in bytes.
    `dense` is true if any number of consecutive elements is one block of memory that starts at the
    given address.
    """

    __slots__ = (
        "_plans",
        "align",
        "dense",
        "element",
        "lb",
        "parts",
        "signature",
        "size",
        "true_lb",
        "true_ub",
        "ub",
    )

    def __init__(
        self,
        size: int,
        lb: int,
        ub: int,
        true_lb: int,
        true_ub: int,
        align: int,
        parts: tuple[RunOrBlocks, ...],
        signature: Signature,
    ) -> None:
        self.size = size
        self.lb = lb
        self.ub = ub
        self.true_lb = true_lb
        self.true_ub = true_ub
        self.align = align
        self.parts = parts
        self.signature = signature
        self.dense = ub - lb == size and (
            size == 0
            or (
                len(parts) == 1
                and isinstance(parts[0], Run)
                and not parts[0].dims
                and parts[0].offset == 0
            )
        )
        self._plans: dict[int, CopyPlan] = {}
        self.element: object = None  # for messages, see buffers/contiguous.py

    @property
    def extent(self) -> int:
        """Distance in bytes between consecutive elements."""
        return self.ub - self.lb

    def new_plan(self) -> CopyPlan:
        """A plan to copy one element."""
        return CopyPlan(self.parts, self.size, self.true_lb, self.true_ub)

    def plan(self, count: int) -> CopyPlan:
        """The plan to copy `count` consecutive elements."""
        plan = self._plans.get(count)
        if plan is None:
            if len(self._plans) >= MOST_PLANS:
                self._plans.clear()
            plan = self._plans[count] = repeat(self, count, self.extent).new_plan()
        return plan


EMPTY = Layout(0, 0, 0, 0, 0, 1, (), ())


def basic(size: int, align: int, what: object) -> Layout:
    """The layout of a predefined datatype of one member."""
    parts = (Run(0, 0, size, ()),)
    return Layout(size, 0, size, 0, size, align, parts, ((1, what),))


def repeat(base: Layout, count: int, stride: int) -> Layout:
    """`count` elements of `base`, one every `stride` bytes."""
    if count <= 0 or base is EMPTY:
        return EMPTY
    if count == 1:
        return base
    last = (count - 1) * stride
    low, high = min(0, last), max(0, last)
    parts = tuple(_tidy(part, (count, stride, base.size)) for part in base.parts)
    return Layout(
        base.size * count,
        base.lb + low,
        base.ub + high,
        base.true_lb + low if base.size else 0,
        base.true_ub + high if base.size else 0,
        base.align,
        parts,
        _times(count, base.signature),
    )


def join(items: Iterable[tuple[int, Layout]]) -> Layout:
    """Layouts one after the other in the stream, each at its displacement in memory."""
    items = [item for item in items if item[1] is not EMPTY]
    if len(items) < 2:
        if not items:
            return EMPTY
        ((displacement, layout),) = items
        return layout if displacement == 0 else _moved(layout, displacement)
    parts: list[RunOrBlocks] = []
    signature: list[tuple[int, object]] = []
    size = 0
    for displacement, layout in items:
        for part in layout.parts:
            parts.append(_shift(part, displacement, size))
        _extend(signature, layout.signature)
        size += layout.size
    data = [item for item in items if item[1].size]
    return Layout(
        size,
        min(d + layout.lb for d, layout in items),
        max(d + layout.ub for d, layout in items),
        min((d + layout.true_lb for d, layout in data), default=0),
        max((d + layout.true_ub for d, layout in data), default=0),
        max(layout.align for _, layout in items),
        _merge(parts),
        tuple(signature),
    )


def _moved(layout: Layout, displacement: int) -> Layout:
    """The layout with all its bytes and bounds displaced."""
    return Layout(
        layout.size,
        layout.lb + displacement,
        layout.ub + displacement,
        layout.true_lb + displacement if layout.size else 0,
        layout.true_ub + displacement if layout.size else 0,
        layout.align,
        tuple([_shift(part, displacement, 0) for part in layout.parts]),
        layout.signature,
    )


def indexed(base: Layout, lengths: Sequence[int], displacements: Sequence[int]) -> Layout:
    """Blocks of `lengths[i]` elements of `base` at `displacements[i]` bytes."""
    extent = base.extent
    if not (base.dense and base.size) or len(lengths) < FEW_BLOCKS:
        return join((d, repeat(base, n, extent)) for n, d in zip(lengths, displacements))
    # A long list over a dense type: the same by array arithmetic.
    count = np.asarray(lengths, dtype=np.int64)
    used = count > 0
    if not used.any():
        return EMPTY
    count = count[used]
    offset = np.asarray(displacements, dtype=np.int64)[used]
    nbytes = count * extent
    packed = np.cumsum(nbytes) - nbytes
    fresh = np.ones(len(offset), dtype=bool)
    fresh[1:] = offset[1:] != (offset + nbytes)[:-1]
    starts = np.flatnonzero(fresh)
    nbytes = np.add.reduceat(nbytes, starts)
    offset, packed = offset[starts], packed[starts]
    total = int(count.sum())
    low, high = int(offset.min()), int((offset + nbytes).max())
    return Layout(
        total * base.size,
        low,
        high,
        low,
        high,
        base.align,
        (_blocks(offset, packed, nbytes, ()),),
        _times(total, base.signature),
    )


def struct(items: Iterable[tuple[int, int, Layout]], padded: bool) -> Layout:
    """Members (count, displacement, layout), the upper bound padded to the alignment or not."""
    layout = join([(d, repeat(member, n, member.extent)) for n, d, member in items])
    excess = layout.extent % layout.align
    if padded and excess:
        return resized(layout, layout.lb, layout.extent + layout.align - excess)
    return layout


def resized(base: Layout, lb: int, extent: int) -> Layout:
    """`base` with other bounds."""
    return Layout(
        base.size,
        lb,
        lb + extent,
        base.true_lb,
        base.true_ub,
        base.align,
        base.parts,
        base.signature,
    )


def _times(count: int, signature: Signature) -> Signature:
    """The signature of `count` elements."""
    if count == 1 or not signature:
        return signature
    if len(signature) == 1:
        n, what = signature[0]
        return ((n * count, what),)
    return ((count, signature),)


def _extend(signature: list[tuple[int, object]], more: Signature) -> None:
    """Append to a signature, adding up equal neighbours."""
    for n, what in more:
        if signature and signature[-1][1] is what:
            signature[-1] = (signature[-1][0] + n, what)
        else:
            signature.append((n, what))


# To make a part takes a fifth of the time of `_replace`.
def _shift(part: RunOrBlocks, offset: int, packed: int) -> RunOrBlocks:
    if isinstance(part, Run):
        return Run(part.offset + offset, part.packed + packed, part.length, part.dims)
    return IrregularBlocks(part.offsets + offset, part.packed + packed, part.lengths, part.dims)


def _with_dims(part: RunOrBlocks, dims: tuple[Dimension, ...]) -> RunOrBlocks:
    if isinstance(part, Run):
        return Run(part.offset, part.packed, part.length, dims)
    return IrregularBlocks(part.offsets, part.packed, part.lengths, dims)


def _tidy(part: RunOrBlocks, outer: Dimension) -> RunOrBlocks:
    """`part` repeated along one more outermost dimension, in its shortest form."""
    count, stride, packed_stride = outer
    if count == 1:
        return part
    dims = part.dims
    if dims:
        n, step, packed_step = dims[0]
        if stride == n * step and packed_stride == n * packed_step:
            return _with_dims(part, ((n * count, step, packed_step), *dims[1:]))
    elif isinstance(part, Run) and stride == packed_stride == part.length:
        return Run(part.offset, part.packed, part.length * count, dims)
    return _with_dims(part, (outer, *dims))


def _merge(parts: list[RunOrBlocks]) -> tuple[RunOrBlocks, ...]:
    """Neighbouring parts, joined if they are contiguous or regular."""
    if len(parts) < 2:
        return tuple(parts)
    joined: list[RunOrBlocks] = [parts[0]]
    for part in parts[1:]:
        last = joined[-1]
        if (
            isinstance(part, Run)
            and isinstance(last, Run)
            and not part.dims
            and not last.dims
            and part.offset == last.offset + last.length
            and part.packed == last.packed + last.length
        ):
            joined[-1] = last._replace(length=last.length + part.length)
        else:
            joined.append(part)
    merged: list[RunOrBlocks] = []
    for dims, group in groupby(joined, key=lambda p: p.dims if isinstance(p, Run) else None):
        runs = list(group)
        if dims is None or len(runs) < 2:
            merged.extend(runs)
        else:
            merged.extend(_sequence(runs, dims))  # type: ignore[arg-type]
    return tuple(merged)


def _sequence(runs: list[Run], dims: tuple[Dimension, ...]) -> list[RunOrBlocks]:
    """Runs of equal dimensions as one part, if that is shorter."""
    first, second = runs[0], runs[1]
    step, packed_step = second.offset - first.offset, second.packed - first.packed
    if all(
        run.length == first.length
        and run.offset == first.offset + i * step
        and run.packed == first.packed + i * packed_step
        for i, run in enumerate(runs)
    ):
        return [_tidy(first, (len(runs), step, packed_step))]
    if len(runs) < FEW_BLOCKS:
        return list(runs)
    return [
        _blocks(
            np.array([run.offset for run in runs], dtype=np.int64),
            np.array([run.packed for run in runs], dtype=np.int64),
            np.array([run.length for run in runs], dtype=np.int64),
            dims,
        )
    ]


def _blocks(
    offsets: np.ndarray, packed: np.ndarray, lengths: np.ndarray, dims: tuple[Dimension, ...]
) -> RunOrBlocks:
    """Scattered blocks, or one run if they are regular."""
    first = Run(int(offsets[0]), int(packed[0]), int(lengths[0]), dims)
    if len(offsets) == 1:
        return first
    if (lengths == lengths[0]).all():
        steps, packed_steps = np.diff(offsets), np.diff(packed)
        if (steps == steps[0]).all() and (packed_steps == packed_steps[0]).all():
            return _tidy(first, (len(offsets), int(steps[0]), int(packed_steps[0])))
    return IrregularBlocks(offsets, packed, lengths, dims)


def leaves(signature: Signature) -> dict[Any, int]:
    """The number of members of each basic type in a signature."""
    total: dict[Any, int] = {}
    for n, what in signature:
        if isinstance(what, tuple):
            for leaf, m in leaves(what).items():
                total[leaf] = total.get(leaf, 0) + n * m
        else:
            total[what] = total.get(what, 0) + n
    return total


def members(signature: Signature) -> int:
    """The number of basic members in a signature."""
    return sum(n * (members(what) if isinstance(what, tuple) else 1) for n, what in signature)


def subarray(
    base: Layout, sizes: Sequence[int], subsizes: Sequence[int], starts: Sequence[int]
) -> Layout:
    """A part of an array in which the last dimension varies fastest."""
    stride = base.extent
    parts, signature, nbytes = base.parts, base.signature, base.size
    offset, low, high = 0, base.true_lb, base.true_ub
    for size, subsize, start in zip(reversed(sizes), reversed(subsizes), reversed(starts)):
        if subsize > 1:
            parts = tuple([_tidy(part, (subsize, stride, nbytes)) for part in parts])
            signature = _times(subsize, signature)
            reach = (subsize - 1) * stride  # negative if the extent is
            low, high = min(low, low + reach), max(high, high + reach)
            nbytes *= subsize
        offset += start * stride
        stride *= size
    return Layout(
        nbytes,
        0,
        stride,
        low + offset if nbytes else 0,
        high + offset if nbytes else 0,
        base.align,
        tuple([_shift(part, offset, 0) for part in parts]),
        signature,
    )


def distributed(
    base: Layout, sizes: Sequence[int], pieces: Sequence[tuple[int, int, int, int]]
) -> Layout:
    """A process's part of an array in which the last dimension varies fastest.

    For each dimension `pieces` holds (first index, block length, step between blocks, number of
    indices owned); the last block may be shorter.
    """
    extent = stride = base.extent
    layout = base
    for size, (first, block, step, owned) in zip(reversed(sizes), reversed(pieces)):
        full, rest = divmod(owned, block) if block else (0, 0)
        whole = repeat(repeat(layout, block, stride), full, step * stride)
        tail = repeat(layout, rest, stride)
        layout = join([(first * stride, whole), ((first + full * step) * stride, tail)])
        stride *= size
    return resized(layout, 0, prod(sizes) * extent)
