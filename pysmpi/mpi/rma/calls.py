"""One-sided communication calls (MPI 4.1, section 12.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from pysmpi.kernel.requests import KernelRequest
from pysmpi.mpi.base.constants import (
    ERR_OP,
    ERR_RMA_SYNC,
    ERR_TRUNCATE,
    ERR_TYPE,
    PROC_NULL,
    SUCCESS,
)
from pysmpi.mpi.base.exceptions import cint, fail, whole
from pysmpi.mpi.base.ranks import Rank, current
from pysmpi.mpi.buffers.spellings import MessageRegion, reduction, unread
from pysmpi.mpi.calls import mpi
from pysmpi.mpi.datatypes.records import Type
from pysmpi.mpi.datatypes.status import Status
from pysmpi.mpi.operators.arithmetic import NO_OP, REPLACE, Operator, check, element
from pysmpi.mpi.operators.operators import PREDEFINED, Op, operator_of
from pysmpi.mpi.point_to_point.operations import NoOperation, RequestOperation
from pysmpi.mpi.point_to_point.requests import Request
from pysmpi.mpi.rma.accesses import (
    Accumulate,
    AtomicGet,
    CompareAndSwap,
    Get,
    GetAccumulate,
    Put,
)
from pysmpi.mpi.rma.arguments import WindowTarget, one_sided, single
from pysmpi.mpi.rma.window import RemoteAccess, WindowSide

if TYPE_CHECKING:
    from mpi4py.typing import BufSpec, TargetSpec

SUM = PREDEFINED["SUM"]

# Kinds of datatype that Compare_and_swap takes (MPI 4.1, section 12.3.4.4).
_SWAPPABLE = frozenset(("integer", "fortran", "multi", "logical", "byte"))


class AccessOperation(RequestOperation):
    """The request of `Rput` and similar calls.

    A call that only writes is complete when the origin's buffer may change, which is at once: the
    data is saved when the program learns this. A call that reads is complete when the data has
    arrived.
    """

    __slots__ = ("access",)

    def __init__(self, rank: Rank, subject: object, access: RemoteAccess) -> None:
        super().__init__(rank, subject)
        self.access = access
        if access.returns:
            self.request = access.watch()
        else:
            self.request = KernelRequest()
            self.request.done = True

    def fill(self, status: Status | None) -> int:
        self.access.keep()
        super().fill(status)
        return SUCCESS


def is_no_op(op: object) -> bool:
    """Whether an operation fetches only: its origin is ignored (MPI 4.1, section 12.3.4)."""
    return isinstance(op, Op) and op._impl is NO_OP


class OneSided:
    """The communication methods of a window."""

    __slots__ = ()

    if TYPE_CHECKING:
        # The object of a window handle.
        def _live(self) -> WindowSide: ...

    # Preconditions of an access.

    def _reach(
        self, rank: int, where: WindowTarget
    ) -> tuple[WindowSide, WindowSide, MessageRegion, bool]:
        """The two sides, the memory at the target, and whether the target is in the epoch."""
        side = self._live()
        target = side.target(self, rank)
        exposed = side.admit(self, rank)
        memory = target.locate(self, where.displacement, where.count, where.datatype)
        return side, target, memory, exposed

    def _fits(self, source: MessageRegion, target: MessageRegion) -> None:
        """Refuse data that are longer than the place for them."""
        if source.nbytes > target.nbytes:
            fail(
                ERR_TRUNCATE,
                f"{source.nbytes} bytes do not fit into the {target.nbytes} bytes given for them",
                self,
            )

    def _put(self, origin: object, target_rank: int, target: object) -> RemoteAccess | None:
        rank = cint(target_rank)
        data, where = one_sided(origin, False, rank, target)
        side = self._live()
        if rank == PROC_NULL:
            return None
        side, other, memory, exposed = self._reach(rank, where)
        self._fits(data, memory)
        return Put(side, other, memory, exposed, data)

    def _get(self, origin: object, target_rank: int, target: object) -> RemoteAccess | None:
        rank = cint(target_rank)
        result, where = one_sided(origin, True, rank, target)
        side = self._live()
        if rank == PROC_NULL:
            return None
        side, other, memory, exposed = self._reach(rank, where)
        self._fits(memory, result)
        return Get(side, other, memory, exposed, result)

    def _accumulate(
        self, origin: object, target_rank: int, target: object, op: Op
    ) -> RemoteAccess | None:
        rank = cint(target_rank)
        data, where = one_sided(origin, False, rank, target)
        side = self._live()
        operator = self._operator(op)
        if operator is NO_OP:
            fail(ERR_OP, "NO_OP is for the calls that fetch", self)
        if rank == PROC_NULL:
            return None
        side, other, memory, exposed = self._reach(rank, where)
        self._fits(data, memory)
        basic = self._element(operator, data, memory)
        return Accumulate(side, other, memory, exposed, data, operator, basic)

    def _get_accumulate(
        self, origin: object, result: object, target_rank: int, target: object, op: Op
    ) -> RemoteAccess | None:
        rank = cint(target_rank)
        data, where = one_sided(origin, True, rank, target, is_no_op(op))
        into = reduction(result, True, rank)
        side = self._live()
        operator = self._operator(op)
        if rank == PROC_NULL:
            return None
        side, other, memory, exposed = self._reach(rank, where)
        return self._fetch(side, other, memory, exposed, data, into, operator)

    def _fetch(
        self,
        side: WindowSide,
        other: WindowSide,
        memory: MessageRegion,
        exposed: bool,
        data: MessageRegion,
        result: MessageRegion,
        operator: Operator,
    ) -> RemoteAccess:
        self._fits(memory, result)
        if operator is NO_OP:
            return AtomicGet(side, other, memory, exposed, result)
        self._fits(data, memory)
        basic = self._element(operator, data, memory)
        return GetAccumulate(side, other, memory, exposed, data, operator, basic, result)

    def _operator(self, op: object) -> Operator:
        operator = operator_of(op)
        if not operator.predefined:
            fail(ERR_OP, "accumulate operations take predefined operations only", self)
        return operator

    def _element(
        self, operator: Operator, data: MessageRegion, memory: MessageRegion
    ) -> Type | None:
        """The basic type that an operation combines; origin and target must consist of it."""
        if operator is REPLACE or operator is NO_OP or memory.nbytes == 0:
            return None
        basic = element(memory.datatype._live())
        mine = element(data.datatype._live())
        if basic is None or mine is None:
            self._bad_type("the datatype of an accumulate operation has one basic type only")
        check(operator, basic)
        if mine.layout.size != basic.layout.size or mine.kind != basic.kind:
            self._bad_type(f"the origin is made of {mine.name}, the target of {basic.name}")
        return basic

    def _bad_type(self, detail: str) -> NoReturn:
        fail(ERR_TYPE, detail, self)

    def _begin(self, access: RemoteAccess | None) -> None:
        if access is not None:
            rank = current()
            access.begin(rank)

    def _begin_request(self, access: RemoteAccess | None, *buffers: object) -> Request:
        rank = current()
        if access is None:
            return Request._of(NoOperation(rank, self, False))
        if access.exposed:
            fail(
                ERR_RMA_SYNC,
                "calls with a request need a lock: call Lock or Lock_all first",
                self,
            )
        access.begin(rank)
        request = Request._of(AccessOperation(rank, self, access))
        request.ob_buf = buffers
        return request

    # Calls.

    @mpi.one_sided("12.3.1")
    def Put(self, origin: BufSpec, target_rank: int, target: TargetSpec | None = None) -> None:
        """Put data into a memory window on a remote process."""
        self._begin(self._put(origin, target_rank, target))

    @mpi.one_sided("12.3.2")
    def Get(self, origin: BufSpec, target_rank: int, target: TargetSpec | None = None) -> None:
        """Get data from a memory window on a remote process."""
        self._begin(self._get(origin, target_rank, target))

    @mpi.one_sided("12.3.4")
    def Accumulate(
        self,
        origin: BufSpec,
        target_rank: int,
        target: TargetSpec | None = None,
        op: Op = SUM,
    ) -> None:
        """Accumulate data into the target process."""
        self._begin(self._accumulate(origin, target_rank, target, op))

    @mpi.one_sided("12.3.4")
    def Get_accumulate(
        self,
        origin: BufSpec,
        result: BufSpec,
        target_rank: int,
        target: TargetSpec | None = None,
        op: Op = SUM,
    ) -> None:
        """Fetch-and-accumulate data into the target process."""
        self._begin(self._get_accumulate(origin, result, target_rank, target, op))

    @mpi.one_sided("12.3.4")
    def Fetch_and_op(
        self,
        origin: BufSpec,
        result: BufSpec,
        target_rank: int,
        target_disp: int = 0,
        op: Op = SUM,
    ) -> None:
        """Perform one-sided read-modify-write."""
        rank, displacement = cint(target_rank), whole(target_disp)
        data = (unread if is_no_op(op) else reduction)(origin, False, rank)
        into = reduction(result, True, rank)
        single({"origin": data, "result": into}, rank)
        side = self._live()
        operator = self._operator(op)
        if rank == PROC_NULL:
            return
        where = WindowTarget(displacement, 1, data.datatype)
        side, other, memory, exposed = self._reach(rank, where)
        if data.datatype._live().kind is None:
            self._bad_type("Fetch_and_op takes predefined datatypes only")
        self._begin(self._fetch(side, other, memory, exposed, data, into, operator))

    @mpi.one_sided("12.3.4")
    def Compare_and_swap(
        self,
        origin: BufSpec,
        compare: BufSpec,
        result: BufSpec,
        target_rank: int,
        target_disp: int = 0,
    ) -> None:
        """Perform one-sided atomic compare-and-swap."""
        rank, displacement = cint(target_rank), whole(target_disp)
        data = reduction(origin, False, rank)
        expected = reduction(compare, False, rank)
        into = reduction(result, True, rank)
        single({"origin": data, "compare": expected, "result": into}, rank)
        self._live()
        if rank == PROC_NULL:
            return
        where = WindowTarget(displacement, 1, data.datatype)
        side, other, memory, exposed = self._reach(rank, where)
        record = data.datatype._live()
        if record.kind not in _SWAPPABLE:
            self._bad_type(f"Compare_and_swap is not defined on {record.name or 'this datatype'}")
        self._begin(CompareAndSwap(side, other, memory, exposed, data, expected, into))

    # The same with requests.

    @mpi.one_sided("12.3.5")
    def Rput(self, origin: BufSpec, target_rank: int, target: TargetSpec | None = None) -> Request:
        """Put data into a memory window on a remote process."""
        access = self._put(origin, target_rank, target)
        return self._begin_request(access, origin)

    @mpi.one_sided("12.3.5")
    def Rget(self, origin: BufSpec, target_rank: int, target: TargetSpec | None = None) -> Request:
        """Get data from a memory window on a remote process."""
        access = self._get(origin, target_rank, target)
        return self._begin_request(access, origin)

    @mpi.one_sided("12.3.5")
    def Raccumulate(
        self,
        origin: BufSpec,
        target_rank: int,
        target: TargetSpec | None = None,
        op: Op = SUM,
    ) -> Request:
        """Fetch-and-accumulate data into the target process."""
        access = self._accumulate(origin, target_rank, target, op)
        return self._begin_request(access, origin)

    @mpi.one_sided("12.3.5")
    def Rget_accumulate(
        self,
        origin: BufSpec,
        result: BufSpec,
        target_rank: int,
        target: TargetSpec | None = None,
        op: Op = SUM,
    ) -> Request:
        """Accumulate data into the target process using remote memory access."""
        access = self._get_accumulate(origin, result, target_rank, target, op)
        return self._begin_request(access, origin, result)
