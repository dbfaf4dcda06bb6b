"""The parts of PyTorch that process groups use, with their types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class Device(Protocol):
    """The memory of a tensor."""

    type: str


class TensorMemory(Protocol):
    """The bytes of a tensor."""

    def data_ptr(self) -> int: ...


class ElementType(Protocol):
    """The type of the elements of a tensor: `torch.float32`."""

    itemsize: int


class Tensor(Protocol):
    """A tensor."""

    dtype: ElementType
    device: Device
    layout: object
    nbytes: int
    shape: tuple[int, ...]

    def __getitem__(self, index: slice, /) -> Tensor: ...
    def clone(self) -> Tensor: ...
    def contiguous(self) -> Tensor: ...
    def copy_(self, other: Tensor, /) -> Tensor: ...
    def data_ptr(self) -> int: ...
    def detach(self) -> Tensor: ...
    def div_(self, divisor: int, /) -> Tensor: ...
    def is_contiguous(self) -> bool: ...
    def new_empty(self, size: int, /) -> Tensor: ...
    def numel(self) -> int: ...
    def numpy(self) -> object: ...
    def reshape(self, size: int, /) -> Tensor: ...
    def untyped_storage(self) -> TensorMemory: ...
    def view(self, other: object, /) -> Tensor: ...


class CollectiveOptions(Protocol):
    """The options of a collective; each kind has some of them."""

    reduceOp: object  # noqa: N815  # the names are PyTorch's
    rootRank: int  # noqa: N815
    asyncOp: bool  # noqa: N815


class GroupOptions(Protocol):
    """The options of a process group that a backend makes."""

    group_rank: int
    global_ranks_in_group: list[int]


class NamedGroup(Protocol):
    """A process group that has a name."""

    def _set_group_name(self, name: str, /) -> None: ...


class Promise(Protocol):
    """A future of PyTorch."""

    def set_result(self, result: object, /) -> None: ...
    def wait(self) -> object: ...


Function = Callable[..., object]
