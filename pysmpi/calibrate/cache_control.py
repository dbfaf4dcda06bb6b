"""Non-temporal stores and flushes of cache lines, for which the C library has no functions.

A fragment of C with the intrinsics of SSE2 is compiled when a computer is measured. Other
architectures have other instructions for this, and some of them none for programs.
"""

from __future__ import annotations

import ctypes
import os
import platform
import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

from pysmpi.errors import UsageError

SOURCE = """\
#include <emmintrin.h>
#include <stddef.h>

/* As memset, past the caches; `to` and `n` are multiples of 16. */
void store_past(char *to, int byte, size_t n)
{
    const __m128i value = _mm_set1_epi8((char)byte);
    for (size_t i = 0; i < n; i += sizeof value)
        _mm_stream_si128((__m128i *)(to + i), value);
    _mm_sfence();
}

/* Write the lines back to memory, and remove them from all caches. */
void flush(char *at, int unused, size_t n)
{
    for (size_t i = 0; i < n; i += LINE)
        _mm_clflush(at + i);
    _mm_mfence();
}
"""


class CacheControl:
    """Functions with the arguments of `memset`: address, byte, length (a multiple of 16 bytes)."""

    def __init__(self, line: int) -> None:
        """Compile them for lines of this number of bytes.

        Raises UsageError on another architecture than x86-64 and without a C compiler.
        """
        if platform.machine() not in ("x86_64", "AMD64"):
            raise UsageError(f"expected x86-64, got {platform.machine()}")
        compiler = next(filter(shutil.which, (os.environ.get("CC", ""), "cc", "gcc", "clang")), "")
        if not compiler:
            raise UsageError("expected a C compiler (cc, gcc, clang or $CC), got none")
        with TemporaryDirectory() as directory:
            source, library = Path(directory) / "control.c", Path(directory) / "control.so"
            source.write_text(SOURCE, encoding="utf-8")
            done = subprocess.run(
                [compiler, "-O2", "-shared", "-fPIC", f"-DLINE={line}", source, "-o", library],
                capture_output=True, text=True,
            )  # fmt: skip
            if done.returncode:
                reason = next(iter(done.stderr.splitlines()), f"status {done.returncode}")
                raise UsageError(f"expected a C compiler for SSE2, got from {compiler}: {reason}")
            functions = ctypes.PyDLL(os.fspath(library))
        self.store_past, self.flush = functions.store_past, functions.flush
        for function in (self.store_past, self.flush):
            function.argtypes = (ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t)
            function.restype = None
