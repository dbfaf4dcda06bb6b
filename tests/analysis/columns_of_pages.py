"""The columns of pages, read as their scripts read them."""

import zlib

import numpy as np

from pysmpi.analysis.scene import DIGITS


def numbers(packed):
    """The numbers of a column of the page, as its script reads them."""
    text = packed["data"]
    assert set(text).isdisjoint("<>&\"'\\")  # neither JSON nor HTML writes them otherwise
    words = [
        sum(DIGITS.index(ord(digit)) * 85 ** (4 - k) for k, digit in enumerate(text[i : i + 5]))
        for i in range(0, len(text), 5)
    ]
    data = b"".join(word.to_bytes(4, "big") for word in words)[: packed["bytes"]]
    planes = np.frombuffer(zlib.decompress(data), np.uint8)
    size = np.dtype(packed["type"]).itemsize
    words = np.ascontiguousarray(planes.reshape(size, -1).T)
    if not packed["steps"]:
        return words.view("<" + packed["type"]).ravel()
    steps = words.view("<u4").ravel().astype(np.int64)
    values = np.cumsum((steps >> 1) ^ -(steps & 1)) % 2**32
    return values.astype("<u4").view("<" + packed["type"])


def values(columns):
    found = {name: numbers(one) for name, one in columns.items()}
    if "lasted" in found:
        found["end"] = found["begin"] + found.pop("lasted")
    return found
