"""Memory exposed through DLPack and through the CUDA array interface.

Both describe device memory for a real MPI library. A simulated rank has host memory only, so the
data of these arrays is accessed as host memory.
The structures are those of DLPack 1.0 (https://dmlc.github.io/dlpack) and of version 3 of the
CUDA array interface (https://numba.readthedocs.io/en/stable/cuda/cuda_array_interface.html).
"""

from __future__ import annotations

import ctypes
import sys
import warnings
from collections.abc import Sequence
from typing import Any

from pysmpi.mpi.base.exported import CPU, CUDA, Exported, at_address
from pysmpi.mpi.internal_errors import touches_program

READ_ONLY = 1

_INT, _UINT, _FLOAT, _COMPLEX, _BOOL = 0, 1, 2, 5, 6

# (kind, size in bytes) -> format of the buffer protocol; an empty one for plain bytes.
_FORMATS = {
    ("b", 1): "?",
    ("i", 1): "b",
    ("i", 2): "h",
    ("i", 4): "i",
    ("i", 8): "l",
    ("u", 1): "B",
    ("u", 2): "H",
    ("u", 4): "I",
    ("u", 8): "L",
    ("f", 2): "e",
    ("f", 4): "f",
    ("f", 8): "d",
    ("f", 16): "g",
    ("c", 4): "Ze",
    ("c", 8): "Zf",
    ("c", 16): "Zd",
    ("c", 32): "Zg",
}
_KINDS = {_INT: "i", _UINT: "u", _FLOAT: "f", _COMPLEX: "c", _BOOL: "b"}


class _DataType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("dtype", _DataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class _Versioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager_ctx", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    ]


_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_IsValid", ctypes.pythonapi)
)
_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


def acquire(obj: object, writable: bool) -> Exported:
    """The memory of an object with `__dlpack__` or `__cuda_array_interface__`.

    Raises BufferError for memory that is not contiguous, not writable or not described soundly,
    and KeyError, TypeError or ValueError for a malformed description.
    """
    if hasattr(obj, "__dlpack__") and hasattr(obj, "__dlpack_device__"):
        return _from_dlpack(obj, writable)
    if hasattr(obj, "__cuda_array_interface__"):
        return _from_cuda(obj, writable)
    raise TypeError(f"expecting an object with a buffer, got '{type(obj).__name__}'")


def contiguous(shape: Sequence[int], strides: Sequence[int], unit: int) -> bool:
    """Whether an array is contiguous in C or in Fortran order, strides counted in `unit`s."""

    def follows(dimensions: range) -> bool:
        size = unit
        for i in dimensions:
            if shape[i] > 1 and strides[i] != size:
                return False
            size *= shape[i]
        return True

    return follows(range(len(shape) - 1, -1, -1)) or follows(range(len(shape)))


@touches_program
def _from_dlpack(obj: Any, writable: bool) -> Exported:
    device_type, device_id = obj.__dlpack_device__()
    for number in (device_type, device_id):
        if not isinstance(number, int):
            raise TypeError(f"dlpack: expecting integers for the device, got {number!r}")
    versioned = True
    arguments = {} if device_type == CPU else {"stream": -1}
    try:
        capsule = obj.__dlpack__(**arguments, max_version=(1, 0), copy=False)
    except TypeError:
        versioned = False
        capsule = obj.__dlpack__(**arguments)
    name = b"dltensor_versioned" if versioned else b"dltensor"
    if not _is_valid(capsule, name):
        raise BufferError("dlpack: invalid capsule object")
    pointer = _pointer(capsule, name)
    readonly = False
    if versioned:
        managed = _Versioned.from_address(pointer)
        if managed.major < 1:
            raise BufferError(f"dlpack: unexpected version {managed.major}.{managed.minor}")
        readonly = bool(managed.flags & READ_ONLY)
        tensor = managed.tensor
    else:
        tensor = _Tensor.from_address(pointer)
    shape = _checked_shape(tensor)
    if readonly and writable:
        raise BufferError("dlpack: buffer is not writable")
    dtype = tensor.dtype
    nbytes = (dtype.bits * dtype.lanes + 7) // 8
    for extent in shape:
        nbytes *= extent
    address = (tensor.data or 0) + tensor.byte_offset
    format, itemsize = _dlpack_format(dtype)
    return Exported(
        at_address(address, nbytes, readonly), format, itemsize, (obj, capsule), device_type
    )


def _checked_shape(tensor: _Tensor) -> list[int]:
    """The shape of a contiguous tensor."""
    ndim = tensor.ndim
    if ndim < 0:
        raise BufferError("dlpack: number of dimensions is negative")
    if ndim > 0 and not tensor.shape:
        raise BufferError("dlpack: shape is missing")
    shape = [tensor.shape[i] for i in range(ndim)]
    if any(extent < 0 for extent in shape):
        raise BufferError(f"dlpack: negative extent in shape {shape}")
    if tensor.strides:
        strides = [tensor.strides[i] for i in range(ndim)]
        if any(stride < 0 for stride in strides):
            raise BufferError(f"dlpack: negative stride in {strides}")
        if not contiguous(shape, strides, 1):
            raise BufferError("dlpack: buffer is not contiguous")
    return shape


def _dlpack_format(dtype: _DataType) -> tuple[str, int]:
    size = dtype.bits // 8
    kind = _KINDS.get(dtype.code, "")
    if dtype.lanes != 1:
        # Old producers describe a complex number as a pair of floats.
        if kind == "f" and dtype.lanes == 2:
            return _FORMATS.get(("c", 2 * size), ""), 2 * size
        return "", 1
    format = _FORMATS.get((kind, size), "")
    return format, size if format else 1


@touches_program
def _from_cuda(obj: Any, writable: bool) -> Exported:
    interface = _of_type(obj.__cuda_array_interface__, dict, "value")
    data, typestr, shape = interface["data"], interface["typestr"], interface["shape"]
    _of_type(data, tuple, "data")
    _of_type(typestr, str, "typestr")
    _of_type(shape, tuple, "shape")
    strides = _of_type(interface.get("strides"), tuple, "strides", optional=True)
    descr = _of_type(interface.get("descr"), list, "descr", optional=True)
    address, readonly = data
    size = 1
    for extent in shape:
        size *= extent
    itemsize = int(typestr[2:])
    if typestr[0] not in "<>|" or typestr[0] == (">" if sys.byteorder == "little" else "<"):
        raise BufferError(
            f"__cuda_array_interface__: typestr {typestr!r} has a byte order "
            f"that is not this machine's"
        )
    if interface.get("mask") is not None:
        raise BufferError("__cuda_array_interface__: cannot handle masked arrays")
    if size < 0:
        raise BufferError(f"__cuda_array_interface__: negative size in shape {shape}")
    if strides is not None and len(strides) != len(shape):
        raise BufferError(
            f"__cuda_array_interface__: expecting {len(shape)} strides for shape "
            f"{shape}, got {strides}"
        )
    if strides is not None and not contiguous(shape, strides, itemsize):
        raise BufferError(
            f"__cuda_array_interface__: buffer is not contiguous (shape {shape}, "
            f"strides {strides}, item size {itemsize})"
        )
    if readonly and writable:
        raise BufferError("__cuda_array_interface__: buffer is not writable")
    if descr is not None and (len(descr) != 1 or descr[0] != ("", typestr)):
        warnings.warn(
            "__cuda_array_interface__: ignoring 'descr' key", RuntimeWarning, stacklevel=2
        )
    format = _FORMATS.get((typestr[1], itemsize), "")
    return Exported(
        at_address(address or 0, size * itemsize, bool(readonly)),
        format,
        itemsize if format else 1,
        obj,
        CUDA,
    )


def _of_type(value: object, kind: type, name: str, optional: bool = False) -> Any:
    if isinstance(value, kind) or (optional and value is None):
        return value
    raise TypeError(
        f"__cuda_array_interface__: expecting a {kind.__name__} for {name}, got {value!r}"
    )
