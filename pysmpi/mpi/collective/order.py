"""Reductions in the order of the simulated algorithm (`--reduction-order`).

By default all contributions are combined in the order of ranks, for every algorithm. In the order
of the algorithm, a sum of floating-point numbers has exactly the bits of the algorithm.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pysmpi.collectives.call import Call
from pysmpi.collectives.order import Order, order_of
from pysmpi.mpi.datatypes.records import Type
from pysmpi.mpi.groups.communicator import Communicator
from pysmpi.mpi.operators.arithmetic import Operator, check, reduce


def by_algorithm(communicator: Communicator) -> bool:
    """Whether the order of the algorithm is used; intercommunicators use that of ranks."""
    if communicator.remote is not communicator or communicator.size == 1:
        return False
    return communicator.universe.settings.reduction_order == "algorithm"


def order_for(
    communicator: Communicator, call: Call, operator: Operator, record: Type
) -> Order | None:
    """The combining order of a call's algorithm; None for the order of ranks.

    The order of ranks also applies to an operator that does not commute if the algorithm does not
    keep this order, and to algorithms that cut through elements.
    """
    if not by_algorithm(communicator):
        return None
    order = order_of(call)
    if not operator.commutative and not order.in_order():
        return None
    size = record.layout.size
    if any(first % size or last % size for first, last, _ in order.nodes()):
        return None
    return order


class Evaluation:
    """Applies an operator along trees; shared results are computed once."""

    def __init__(
        self, order: Order, operator: Operator, streams: Sequence[Any], record: Type
    ) -> None:
        check(operator, record)
        self.order = order
        self.operator = operator
        self.streams = [memoryview(stream) for stream in streams]
        self.record = record
        self.values: dict[tuple[int, int, int], bytes] = {}

    def of_rank(self, rank: int) -> bytes:
        """The result of one rank, packed."""
        return b"".join([self.value(*piece) for piece in self.order.results[rank]])

    def value(self, first: int, last: int, node: int) -> bytes:
        """One piece by one tree; trees may be as deep as there are ranks."""
        trees, values = self.order.trees, self.values
        pending = [node]
        while pending:
            key = (first, last, pending[-1])
            if key in values:
                pending.pop()
                continue
            if key[2] < trees.ranks:
                values[key] = bytes(self.streams[key[2]][first:last])
                pending.pop()
                continue
            pair = trees.pairs[key[2] - trees.ranks]
            missing = [one for one in pair if (first, last, one) not in values]
            if missing:
                pending += missing
                continue
            operands = [values[first, last, one] for one in pair]
            count = (last - first) // self.record.layout.size
            values[key] = reduce(self.operator, operands, count, self.record)
            pending.pop()
        return values[first, last, node]
