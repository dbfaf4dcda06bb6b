"""Programs that are not Python's: what a file is, by the bytes at its begin."""

from __future__ import annotations

from typing import Literal

# Offsets of the type of an ELF file, and its values.
_ELF_TYPE, _SHARED_OBJECT = 16, 3
_ELF_DYNAMIC_ENTRY = b"/ld-"  # the name of its loader, which programs have and libraries do not
_COMPILED = (
    (b"MZ", "a program of Windows"),
    (b"\xcf\xfa\xed\xfe", "a compiled program of macOS"),
    (b"\xca\xfe\xba\xbe", "a class of Java or a compiled program of macOS"),
    (b"!<arch>\n", "a static library"),
    (b"\0asm", "a WebAssembly module"),
    (b"%PDF", "a PDF file"),
    (b"\x89PNG", "a picture"),
    (b"\x1f\x8b", "a compressed file"),
    (b"BZh", "a compressed file"),
    (b"\xfd7zXZ\0", "a compressed file"),
    (b"\x28\xb5\x2f\xfd", "a compressed file"),
    (b"PK\3\4", "a damaged zip file"),
    (b"\x89HDF\r\n", "an HDF5 file"),
    (b"\x93NUMPY", "an array of NumPy"),
    (b"PAR1", "a table in Parquet"),
)
HEAD = 1 << 16  # bytes that are enough to know
_OF_SMPI = b"\0libsimgrid."  # a library that a program of smpicc needs
_HINT = "; of compiled programs, pysmpi runs those for Linux that are linked with an MPI library"


def foreign(data: bytes) -> str:
    """The kind of a file that cannot be a Python program; empty for one that may be.

    `data` is its contents, or their first `HEAD` bytes.
    """
    if data.startswith(b"\x7fELF"):
        if _OF_SMPI in data:
            return "a compiled program of SMPI; compile its source with pysmpi cc, cxx or fc"
        order: Literal["big", "little"] = "big" if data[5:6] == b"\2" else "little"
        kind = int.from_bytes(data[_ELF_TYPE : _ELF_TYPE + 2], order)
        library = kind == _SHARED_OBJECT and _ELF_DYNAMIC_ENTRY not in data[:HEAD]
        found = "a shared library" if library else "a compiled program"
        return f"{found} (ELF){_HINT}"
    for magic, name in _COMPILED:
        if data.startswith(magic) and (magic != b"MZ" or b"\0" in data[:1024]):
            return name + (_HINT if "compiled" in name or "Windows" in name else "")
    # Byte code begins with the number of its version, of which all have this end.
    if data[2:4] == b"\r\n" and b"\0" in data[4:16]:
        return "byte code of another version of Python; give its source"
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "a text in UTF-16; save it as UTF-8"
    return ""
