"""The base of classes that export a buffer, where pysmpi was installed without a C compiler.

From Python 3.12 on, the buffer has a wrapper: `memoryview(window).obj` is not the memory of the
window. Python 3.11 has no `__buffer__`. Its buffer slot, at a fixed offset in the type object, is
filled through ctypes: this layout is final. A callback of ctypes cannot raise, so there a request
that the exporter refuses is a SystemError.
"""

from __future__ import annotations

import ctypes
import sys
from typing import Any


class Exporter:
    """A class whose instances export the buffer of their attribute `_exporter`.

    None is an empty buffer.
    """

    __slots__ = ()

    _exporter: Any

    def __buffer__(self, flags: int, /) -> memoryview:
        exporter = self._exporter
        return memoryview(b"" if exporter is None else exporter)


if sys.version_info < (3, 12):
    _function = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p, ctypes.c_int)
    _export = _function(("PyObject_GetBuffer", ctypes.pythonapi))
    _fill = ctypes.pythonapi.PyBuffer_FillInfo
    _fill.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_ssize_t, ctypes.c_int, ctypes.c_int]

    def _get_buffer(self: Exporter, view: int, flags: int) -> int:
        try:
            exporter = self._exporter
            if exporter is None:
                return int(_fill(view, None, None, 0, 0, flags))
            return int(_export(exporter, view, flags))
        except Exception:
            return -1

    _callback = _function(_get_buffer)

    # PyTypeObject.tp_as_buffer of a 64-bit machine; its first member is bf_getbuffer.
    _procedures = ctypes.c_void_p.from_address(id(Exporter) + 20 * 8).value
    assert _procedures is not None
    _slot = ctypes.c_void_p.from_address(_procedures)
    _slot.value = ctypes.cast(_callback, ctypes.c_void_p).value
