"""The process group of PyTorch whose operations are calls of MPI."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from greenlet import getcurrent

from pysmpi.mpi.base.ranks import Fiber
from pysmpi.patches.torch.interfaces import (
    CollectiveOptions,
    Device,
    ElementType,
    Function,
    Promise,
    Tensor,
)

if TYPE_CHECKING:
    from mpi4py import MPI
else:
    from pysmpi.mpi import MPI


_OPERATORS = {
    "SUM": MPI.SUM, "AVG": MPI.SUM, "PRODUCT": MPI.PROD, "MIN": MPI.MIN, "MAX": MPI.MAX,
    "BAND": MPI.BAND, "BOR": MPI.BOR, "BXOR": MPI.BXOR,
}  # fmt: skip
_FUNCTIONS = {  # of PyTorch, for the types that MPI does not have
    "SUM": "add", "AVG": "add", "PRODUCT": "mul", "MIN": "minimum", "MAX": "maximum",
    "BAND": "bitwise_and", "BOR": "bitwise_or", "BXOR": "bitwise_xor",
}  # fmt: skip


def process_group_class(module: Any) -> Any:
    """The subclass of `ProcessGroup` of `torch.distributed.distributed_c10d`."""
    torch: Any = sys.modules["torch"]

    engine = torch.autograd.Variable._execution_engine
    evaluated = torch._C._current_autograd_node  # None outside the functions of a backward pass
    excluded = torch._C._dispatch_tls_is_dispatch_key_excluded

    class Future(torch.futures.Future):  # type: ignore[misc]
        """The future of an operation; who waits for it in Python completes it."""

        def __init__(self, work: Work) -> None:
            super().__init__()
            self._work = work

        def wait(self) -> object:
            self._work.wait()
            return super().wait()

        def value(self) -> object:
            self._work.wait()
            return super().value()

    class Work(module.Work):  # type: ignore[misc]
        """An operation that has begun; `request` is None if it is complete."""

        _request: MPI.Request | Every | None
        _future: Promise | None
        _complete: bool

        def __init__(
            self, result: Sequence[Tensor], request: MPI.Request | Every | None, finish: Function
        ) -> None:
            super().__init__()
            self._result, self._request, self._finish = result, request, finish
            self._future = None
            self._status = MPI.Status()
            self._complete = False
            if request is None:
                self._end()

        def _end(self) -> None:
            if not self._complete:
                self._complete = True
                self._request = None
                self._finish()
                if self._future is not None:
                    self._future.set_result(self._result)

        def begun(self) -> None:
            """Let C++ code that called the operation wait for it where others can continue.

            A backward pass completes it before its end, since then C++ code waits for the future.
            """
            if not self._complete and not isinstance(getcurrent(), Fiber):
                if evaluated() is None:
                    self.wait()
                else:
                    engine.queue_callback(self.wait)

        def wait(self, timeout: object = None) -> bool:
            if self._request is not None:
                refuse_below_operators()
                self._request.Wait(self._status)
                self._end()
            return True

        def synchronize(self) -> None:
            self.wait()

        def is_completed(self) -> bool:
            if self._request is not None and self._request.Test(self._status):
                self._end()
            return self._complete

        def is_success(self) -> bool:
            return self._complete

        def exception(self) -> None:
            return None

        def result(self) -> Sequence[Tensor]:
            self.wait()
            return self._result

        def source_rank(self) -> int:
            return int(self._status.source)

        _source_rank = source_rank

        def get_future(self) -> Promise:
            if self._future is None:
                self._future = Future(self)
                if self._complete:
                    self._future.set_result(self._result)
                elif evaluated() is None:
                    self.wait()
            return self._future

    class Every:
        """The request of several operations."""

        def __init__(self, works: list[Work]) -> None:
            self._works = works

        def Wait(self, status: object = None) -> None:  # noqa: N802
            for work in self._works:
                work.wait()

        def Test(self, status: object = None) -> bool:  # noqa: N802
            return all([work.is_completed() for work in self._works])

    def plain(tensor: Tensor) -> Tensor:
        """The elements of a tensor in one dimension, in its memory if they are contiguous there."""
        if tensor.device.type != "cpu" or tensor.layout is not torch.strided:
            raise ValueError(
                f"a process group got a {tensor.layout} tensor on {tensor.device}: "
                "expected a dense tensor on the CPU"
            )
        return tensor.detach().contiguous().reshape(-1)

    def flat(tensors: Sequence[Tensor]) -> Tensor:
        """The elements of tensors, one after the other."""
        return plain(tensors[0]) if len(tensors) == 1 else torch.cat([plain(t) for t in tensors])

    def spread(elements: Tensor, tensors: Sequence[Tensor]) -> Callable[[], None]:
        """A function that copies elements into tensors, unless they have the memory in common."""

        def copy() -> None:
            offset = 0
            with torch.no_grad():
                for tensor in tensors:
                    part = elements[offset : offset + tensor.numel()]
                    if part.data_ptr() != tensor.data_ptr():
                        tensor.detach().copy_(part.view(tensor.shape))
                    offset += tensor.numel()

        return copy

    def apart(source: Tensor, target: Tensor) -> Tensor:
        """The elements to be sent, as a copy if they are in the memory of those to be received."""
        same = source.untyped_storage().data_ptr() == target.untyped_storage().data_ptr()
        return source.clone() if same else source

    def memory(elements: Tensor) -> list[Any]:
        return [elements.view(torch.uint8).numpy(), MPI.BYTE]

    @contextmanager
    def operator(name: str, kind: ElementType) -> Iterator[tuple[MPI.Op, MPI.Datatype | None]]:
        """The operator of MPI for a type of PyTorch, and the type of MPI, to begin a call."""
        if name not in _OPERATORS:
            raise ValueError(f"ReduceOp.{name} is not simulated: expected one of {[*_OPERATORS]}")
        if kind not in (torch.float16, torch.bfloat16):
            yield _OPERATORS[name], None
            return
        function = getattr(torch, _FUNCTIONS[name])

        def reduce(source: object, target: object, _: object) -> None:
            left, right = (torch.frombuffer(part, dtype=kind) for part in (source, target))
            function(left, right, out=right)

        datatype = MPI.BYTE.Create_contiguous(kind.itemsize).Commit()
        op = MPI.Op.Create(reduce, commute=True)
        try:
            yield op, datatype
        finally:
            op.Free()
            datatype.Free()

    def reducible(elements: Tensor, datatype: MPI.Datatype | None) -> Any:
        if datatype is not None:
            return [elements.view(torch.uint8).numpy(), elements.numel(), datatype]
        return elements.numpy()

    def refuse_below_operators() -> None:
        """Refuse to wait where only a carrier could: state of the thread would be mixed up."""
        if isinstance(getcurrent(), Fiber) and excluded("ADInplaceOrView"):
            raise RuntimeError(
                "a process group is used in an operator of PyTorch (of a DTensor, for instance), "
                "which C++ code calls: other ranks cannot continue there. Communicate outside of "
                "operators, as DTensor.redistribute does"
            )

    def name_of(options: CollectiveOptions) -> str:
        op = options.reduceOp
        kind = getattr(op, "op", op)
        return str(kind).rpartition(".")[2]

    class SimulatedProcessGroup(module.ProcessGroup):  # type: ignore[misc]
        """A process group over a communicator of MPI."""

        def __init__(self, communicator: MPI.Intracomm) -> None:
            super().__init__(communicator.rank, communicator.size)
            self.communicator = communicator
            self._batch: list[Work] | None = None
            self._name = self._description = ""

        @property
        def group_name(self) -> str:
            return self._name

        @property
        def group_desc(self) -> str:
            return self._description

        def _set_group_name(self, name: str) -> None:
            self._name = name

        def _set_group_desc(self, description: str) -> None:
            self._description = description

        def getBackendName(self) -> str:  # noqa: N802  # the name in C++
            return "pysmpi"

        def __repr__(self) -> str:
            return f"<process group of {self.size()} ranks over MPI>"

        @property
        def _device_types(self) -> list[Device]:
            return [torch.device("cpu")]

        def _call(
            self,
            options: CollectiveOptions | None,
            name: str,
            *arguments: Any,
            result: Sequence[Tensor] = (),
            finish: Function = bool,
        ) -> Work:
            """Call an immediate collective procedure of MPI.

            Blocking operations match those that are not in PyTorch, but not in MPI.
            """
            refuse_below_operators()
            request = getattr(self.communicator, name)(*arguments)
            work = Work(list(result), request, finish)
            if not getattr(options, "asyncOp", True):
                work.wait()
            work.begun()
            if self._batch is not None:
                self._batch.append(work)
            return work

        def _start_coalescing(self, device: object) -> None:
            self._batch = []

        def _end_coalescing(self, device: object) -> Work:
            works, self._batch = self._batch or [], None
            return self._all(works)

        def _all(self, works: list[Work]) -> Work:
            """The work of several operations."""
            if len(works) == 1:
                return works[0]
            result = [tensor for work in works for tensor in work._result]
            requests = [work._request for work in works if work._request is not None]
            if not requests:
                return Work(result, None, bool)

            return Work(result, Every(works), bool)

        def allreduce(
            self, tensors: Sequence[Tensor], opts: CollectiveOptions | None = None
        ) -> Work:
            options = module.AllreduceOptions() if opts is None else opts
            name = name_of(options)
            elements = flat(tensors)
            with operator(name, elements.dtype) as (op, datatype):
                return self._call(
                    options, "Iallreduce", MPI.IN_PLACE, reducible(elements, datatype), op,
                    result=tensors, finish=self._reduced(name, elements, tensors),
                )  # fmt: skip

        def _reduced(
            self, name: str, elements: Tensor, tensors: Sequence[Tensor]
        ) -> Callable[[], None]:
            copy = spread(elements, tensors)

            def finish() -> None:
                if name == "AVG":
                    elements.div_(self.size())
                copy()

            return finish

        def allreduce_coalesced(
            self, tensors: Sequence[Tensor], opts: CollectiveOptions | None = None
        ) -> Work:
            if len({tensor.dtype for tensor in tensors}) == 1:
                return self.allreduce(tensors, opts)
            return self._all([self.allreduce([tensor], opts) for tensor in tensors])

        def reduce(self, tensors: Sequence[Tensor], opts: CollectiveOptions) -> Work:
            name = name_of(opts)
            elements = flat(tensors)
            with operator(name, elements.dtype) as (op, datatype):
                buffer = reducible(elements, datatype)
                root = opts.rootRank == self.rank()
                ends = (MPI.IN_PLACE, buffer) if root else (buffer, None)
                finish = self._reduced(name, elements, tensors) if root else bool
                return self._call(
                    opts, "Ireduce", *ends, op, opts.rootRank, result=tensors, finish=finish
                )

        def broadcast(self, tensors: Sequence[Tensor], opts: CollectiveOptions) -> Work:
            elements = flat(tensors)
            return self._call(
                opts, "Ibcast", memory(elements), opts.rootRank,
                result=tensors, finish=spread(elements, tensors),
            )  # fmt: skip

        def allgather(
            self,
            output_tensors: Sequence[Sequence[Tensor]],
            input_tensors: Sequence[Tensor],
            opts: CollectiveOptions | None = None,
        ) -> Work:
            return self._all(
                [self._gathered(*pair, opts) for pair in zip(output_tensors, input_tensors)]
            )

        def _gathered(
            self, outputs: Sequence[Tensor], tensor: Tensor, opts: CollectiveOptions | None
        ) -> Work:
            own = plain(tensor)
            total = sum(output.numel() for output in outputs)
            if total != own.numel() * self.size():
                raise ValueError(
                    f"all_gather: {total} elements of output, expected {self.size()} times the "
                    f"{own.numel()} of the input"
                )
            one = len(outputs) == 1 and outputs[0].is_contiguous()
            elements = plain(outputs[0]) if one else own.new_empty(total)
            own = apart(own, elements)
            return self._call(
                opts, "Iallgather", memory(own), memory(elements),
                result=outputs, finish=spread(elements, outputs),
            )  # fmt: skip

        def all_gather_single(
            self, output: Tensor, input: Tensor, opts: CollectiveOptions | None = None
        ) -> Work:
            return self._gathered([output], input, opts)

        def all_gather_single_coalesced(
            self,
            outputs: Sequence[Tensor],
            inputs: Sequence[Tensor],
            opts: CollectiveOptions | None = None,
        ) -> Work:
            return self._all([self._gathered([a], b, opts) for a, b in zip(outputs, inputs)])

        def allgather_coalesced(
            self,
            output_lists: Sequence[Sequence[Tensor]],
            inputs: Sequence[Tensor],
            opts: CollectiveOptions | None = None,
        ) -> Work:
            return self.allgather(output_lists, inputs, opts)

        def reduce_scatter(
            self,
            outputs: Sequence[Tensor],
            input_lists: Sequence[Sequence[Tensor]],
            opts: CollectiveOptions | None = None,
        ) -> Work:
            return self._all([self._scattered(*pair, opts) for pair in zip(outputs, input_lists)])

        def _scattered(
            self, output: Tensor, inputs: Sequence[Tensor], opts: CollectiveOptions | None
        ) -> Work:
            options = module.ReduceScatterOptions() if opts is None else opts
            name = name_of(options)
            source, elements = flat(inputs), plain(output)
            if source.numel() != elements.numel() * self.size():
                raise ValueError(
                    f"reduce_scatter: {source.numel()} elements of input, expected {self.size()} "
                    f"times the {elements.numel()} of the output"
                )
            source = apart(source, elements)
            with operator(name, elements.dtype) as (op, datatype):
                return self._call(
                    options, "Ireduce_scatter_block",
                    reducible(source, datatype), reducible(elements, datatype), op,
                    result=[output], finish=self._reduced(name, elements, [output]),
                )  # fmt: skip

        def reduce_scatter_single(
            self, output: Tensor, input: Tensor, opts: CollectiveOptions | None = None
        ) -> Work:
            return self._scattered(output, [input], opts)

        def reduce_scatter_single_coalesced(
            self,
            outputs: Sequence[Tensor],
            inputs: Sequence[Tensor],
            opts: CollectiveOptions | None = None,
        ) -> Work:
            return self._all([self._scattered(a, [b], opts) for a, b in zip(outputs, inputs)])

        def gather(
            self,
            output_tensors: Sequence[Sequence[Tensor]],
            input_tensors: Sequence[Tensor],
            opts: CollectiveOptions,
        ) -> Work:
            own = flat(input_tensors)
            if opts.rootRank != self.rank():
                return self._call(opts, "Igather", memory(own), None, opts.rootRank)
            outputs = output_tensors[0]
            elements = own.new_empty(own.numel() * self.size())
            return self._call(
                opts, "Igather", memory(own), memory(elements), opts.rootRank,
                result=outputs, finish=spread(elements, outputs),
            )  # fmt: skip

        def scatter(
            self,
            output_tensors: Sequence[Tensor],
            input_tensors: Sequence[Sequence[Tensor]],
            opts: CollectiveOptions,
        ) -> Work:
            elements = flat(output_tensors)
            root = opts.rootRank == self.rank()
            source = memory(apart(flat(input_tensors[0]), elements)) if root else None
            return self._call(
                opts, "Iscatter", source, memory(elements), opts.rootRank,
                result=output_tensors, finish=spread(elements, output_tensors),
            )  # fmt: skip

        def alltoall(
            self,
            output_tensors: Sequence[Tensor],
            input_tensors: Sequence[Tensor],
            opts: CollectiveOptions | None = None,
        ) -> Work:
            source = flat(input_tensors)
            elements = source.new_empty(sum(output.numel() for output in output_tensors))
            sent, received = ([t.nbytes for t in side] for side in (input_tensors, output_tensors))
            return self._exchanged(source, elements, sent, received, output_tensors, opts)

        def _exchanged(
            self,
            source: Tensor,
            elements: Tensor,
            sent: list[int],
            received: list[int],
            outputs: Sequence[Tensor],
            opts: CollectiveOptions | None,
        ) -> Work:
            finish = spread(elements, outputs)
            arguments = [memory(apart(source, elements)), memory(elements)]
            name = "Ialltoall"
            if len({*sent, *received}) > 1:
                name = "Ialltoallv"
                for counts, argument in zip((sent, received), arguments):
                    argument.insert(1, counts)
            return self._call(opts, name, *arguments, result=outputs, finish=finish)

        def all_to_all_single(
            self,
            output: Tensor,
            input: Tensor,
            output_splits: list[int],
            input_splits: list[int],
            opts: CollectiveOptions | None = None,
        ) -> Work:
            source, elements = plain(input), plain(output)
            sides: list[list[int]] = []
            for tensor, splits in ((input, input_splits), (output, output_splits)):
                if splits:
                    row = tensor.nbytes // max(1, tensor.shape[0])
                    sides.append([row * split for split in splits])
                else:
                    sides.append([tensor.nbytes // self.size()] * self.size())
            return self._exchanged(source, elements, sides[0], sides[1], [output], opts)

        def barrier(self, opts: CollectiveOptions | None = None) -> Work:
            return self._call(opts, "Ibarrier")

        def monitored_barrier(self, timeout: object = None, wait_all_ranks: bool = False) -> None:
            self.communicator.Barrier()

        def send(self, tensors: Sequence[Tensor], dst: int, tag: int = 0) -> Work:
            refuse_below_operators()
            request = self.communicator.Isend(memory(flat(tensors)), dst, tag)
            return Work(tensors, request, bool)

        def recv(self, tensors: Sequence[Tensor], src: int, tag: int = 0) -> Work:
            refuse_below_operators()
            elements = flat(tensors)
            request = self.communicator.Irecv(memory(elements), src, tag)
            return Work(tensors, request, spread(elements, tensors))

        def recv_anysource(self, tensors: Sequence[Tensor], tag: int = 0) -> Work:
            return self.recv(tensors, MPI.ANY_SOURCE, tag)

        def shutdown(self) -> None:
            """End the group: nothing is left to be done."""

        abort = shutdown

        # Names of other versions of PyTorch.
        _allgather_base = all_gather_single
        _reduce_scatter_base = reduce_scatter_single
        alltoall_base = all_to_all_single
        allgather_into_tensor_coalesced = all_gather_single_coalesced
        reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced

    return SimulatedProcessGroup
