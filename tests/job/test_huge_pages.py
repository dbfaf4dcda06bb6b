"""The memory of many ranks in huge pages."""

import os
import subprocess
import sys
import tracemalloc

import pytest

from pysmpi.job import heap

huge_pages = pytest.importorskip(
    "pysmpi.job.huge_pages", reason="pysmpi was installed without a C compiler, or not on Linux"
)

# In a process of its own, because what it installs stays.
BLOCKS = """
import ctypes
from itertools import product
from pysmpi.job import huge_pages

api = ctypes.pythonapi
for function in (api.PyMem_Malloc, api.PyMem_Realloc, api.PyMem_Calloc):
    function.restype = ctypes.c_void_p
api.PyMem_Malloc.argtypes = [ctypes.c_size_t]
api.PyMem_Calloc.argtypes = [ctypes.c_size_t, ctypes.c_size_t]
api.PyMem_Realloc.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
api.PyMem_Free.argtypes = [ctypes.c_void_p]
api.PyMem_Free.restype = None

SIZES = (1, 512, 513, 1024, 1025, 1500, 2048, 2049, 5000)
early = [(size, api.PyMem_Malloc(size)) for size in SIZES]
huge_pages.install()
huge_pages.install()

def contents(size):
    return bytes(i * 7 % 251 for i in range(size))

for size, block in early:
    ctypes.memmove(block, contents(size), size)
    block = api.PyMem_Realloc(block, 1800)
    assert ctypes.string_at(block, min(size, 1800)) == contents(min(size, 1800))
    api.PyMem_Free(block)

several = []
for before, after in product(SIZES, SIZES):
    block = api.PyMem_Realloc(None, before) if after % 2 else api.PyMem_Malloc(before)
    assert block % 16 == 0
    ctypes.memmove(block, contents(before), before)
    other = api.PyMem_Realloc(block, after)
    least = min(before, after)
    assert ctypes.string_at(other, least) == contents(least), (before, after)
    ctypes.memmove(other, contents(after), after)
    several.append((after, other))
for size, block in several:
    assert ctypes.string_at(block, size) == contents(size), "blocks overlap"
    api.PyMem_Free(block)
zeros = api.PyMem_Calloc(3, 500)
assert ctypes.string_at(zeros, 1500) == bytes(1500)
api.PyMem_Free(zeros)

# Blocks of different sizes take the memory of each other.
first = [api.PyMem_Malloc(1100) for _ in range(100)]
for block in first:
    api.PyMem_Free(block)
second = [api.PyMem_Malloc(2000) for _ in range(100)]
assert sorted(first) == sorted(second)

def flags_of(address):
    mine = False
    for line in open("/proc/self/smaps"):
        words = line.split()
        if "-" in words[0]:
            begin, end = (int(word, 16) for word in words[0].split("-"))
            mine = begin <= address < end
        elif mine and words[0] == "VmFlags:":
            return words[1:]

objects = [float(i) for i in range(300_000)]  # more than the arenas that are open
print(*("hg" in flags_of(address) for address in (second[0], id(objects[-1]))))
"""


def test_blocks_keep_their_contents_and_are_in_huge_pages():
    environment = {name: text for name, text in os.environ.items() if name != "PYTHONMALLOC"}
    done = subprocess.run(
        [sys.executable, "-c", BLOCKS], env=environment, capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, done.stderr
    if os.path.exists("/sys/kernel/mm/transparent_hugepage"):
        assert done.stdout.split() == ["True", "True"]


@pytest.mark.parametrize(
    "ranks, variable, traced, installed",
    [(10_000, None, False, 1), (9_999, None, False, 0), (10_000, "malloc", False, 0),
     (10_000, None, True, 0)],
)  # fmt: skip
def test_they_are_for_many_ranks_and_for_the_allocators_of_python(
    ranks, variable, traced, installed, monkeypatch
):
    calls = []
    monkeypatch.setattr(huge_pages, "install", lambda: calls.append(1))
    monkeypatch.delenv("PYTHONMALLOC", raising=False)
    if variable is not None:
        monkeypatch.setenv("PYTHONMALLOC", variable)
    monkeypatch.setattr(heap, "_traced", lambda: traced)
    heap.use_huge_pages(ranks)
    assert len(calls) == (0 if sys.flags.dev_mode else installed)


def test_a_watch_of_memory_is_seen():
    before = tracemalloc.is_tracing()
    if not before:
        tracemalloc.start()
    try:
        assert heap._traced()
    finally:
        if not before:
            tracemalloc.stop()
