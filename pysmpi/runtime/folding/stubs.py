"""The path around Python for arrays that are not folded: a few machine instructions.

numpy frees arrays during the propagation of exceptions, and no Python function may run then. The
functions that numpy calls therefore only compare and jump. Small allocations go directly to numpy's
own allocator, without extra cost. Large ones go to a Python function. A freed folded array is put
into a queue, which the next large allocation empties.
"""

from __future__ import annotations

import ctypes
import mmap
import platform
import struct
import sys

from pysmpi.errors import UsageError

QUEUE = 1 << 16  # frees that are noted; of more, arrays count as alive, which does no harm


class Stubs:
    """The four functions, as addresses.

    `default` are the functions of numpy's own allocator, `large` those of pysmpi (malloc, calloc,
    realloc); `context` is the first argument of numpy's functions. Folded arrays have addresses
    from `start` to `stop`.
    """

    def __init__(
        self, default: tuple[int, int, int, int], large: tuple[int, int, int], context: int,
        start: int, stop: int,
    ) -> None:  # fmt: skip
        if platform.machine() not in ("x86_64", "AMD64") or not sys.platform.startswith("linux"):
            raise UsageError(
                f"--fold: expected Linux on x86_64, got {sys.platform} on {platform.machine()}"
            )
        self._least = ctypes.c_uint64(1 << 62)
        self._queue = (ctypes.c_uint64 * (1 + 2 * QUEUE))()
        least = ctypes.addressof(self._least)
        queue = ctypes.addressof(self._queue)
        inside = _inside(start, stop)
        # Input: rdi is the handler's number; rsi, rdx the other arguments (System V ABI).
        codes = [
            # malloc(size): cmp rsi, [least]
            _load_rax(least) + b"\x48\x3b\x30" + _choose(large[0], default[0], context),
            # calloc(number, size): mov rcx, rsi; imul rcx, rdx; cmp rcx, [least]
            _load_rax(least) + b"\x48\x89\xf1\x48\x0f\xaf\xca\x48\x3b\x08"
            + _choose(large[1], default[1], context),
            # realloc(address, size): our addresses are below `stop` from `start` on
            inside + b"\xf5" + _choose(large[2], default[2], context),  # cmc
            inside + _note(queue) + _jump(default[3], context),
        ]  # fmt: skip
        self._memory = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE)
        base = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        self.addresses = []
        at = 0
        for code in codes:
            self._memory[at : at + len(code)] = code
            self.addresses.append(base + at)
            at += -(-len(code) // 16) * 16
        protect = ctypes.CDLL(None).mprotect
        protect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
        if protect(base, mmap.PAGESIZE, mmap.PROT_READ | mmap.PROT_EXEC):
            raise UsageError("--fold: this system does not let a process make code, expected it to")

    def offer(self, least: int) -> None:
        """Offer allocations of at least `least` bytes."""
        self._least.value = least

    def freed(self) -> list[tuple[int, int]]:
        """The (number of the handler, address) of arrays that were freed since the last call."""
        queue = self._queue
        count = queue[0]
        if count == 0:
            return []
        queue[0] = 0
        noted = queue[1 : 1 + 2 * count]
        return list(zip(noted[::2], noted[1::2]))


def _load_rax(value: int) -> bytes:
    return b"\x48\xb8" + struct.pack("<Q", value)


def _jump(function: int, context: int) -> bytes:
    """mov rdi, context; mov rax, function; jmp rax"""
    return b"\x48\xbf" + struct.pack("<Q", context) + _load_rax(function) + b"\xff\xe0"


def _choose(large: int, default: int, context: int) -> bytes:
    """If above or equal, jump to `large`, else to `default`: jae over the second."""
    usual = _jump(default, context)
    return b"\x73" + bytes([len(usual)]) + usual + _load_rax(large) + b"\xff\xe0"


def _inside(start: int, stop: int) -> bytes:
    """Below, of the comparison, if the address in rsi is ours.

    mov rax, start; mov rcx, rsi; sub rcx, rax; mov rax, length; cmp rcx, rax
    """
    return (
        _load_rax(start) + b"\x48\x89\xf1\x48\x29\xc1" + _load_rax(stop - start) + b"\x48\x39\xc1"
    )


def _note(queue: int) -> bytes:
    """If below, put rdi and rsi into the queue, if it has room, and return; else continue.

    mov rax, queue; mov rcx, [rax]; cmp rcx, QUEUE; jae end; inc qword [rax]; shl rcx, 4;
    mov [rax + rcx + 8], rdi; mov [rax + rcx + 16], rsi; end: ret
    """
    store = b"\x48\xff\x00\x48\xc1\xe1\x04\x48\x89\x7c\x08\x08\x48\x89\x74\x08\x10"
    body = _load_rax(queue) + b"\x48\x8b\x08\x48\x81\xf9" + struct.pack("<I", QUEUE)
    body += b"\x73" + bytes([len(store)]) + store + b"\xc3"
    return b"\x73" + bytes([len(body)]) + body
