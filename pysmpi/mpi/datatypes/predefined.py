"""The predefined datatypes (MPI 4.1, sections 3.2.2 and 5.1), as data.

Handles, names and sizes are those of the MPICH ABI on a 64-bit Linux machine. Datatypes that this
ABI lacks, such as MPI_INTEGER16, are names of DATATYPE_NULL, as in mpi4py with MPICH.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

NULL = 0x0C000000


class NamedType(NamedTuple):
    """A predefined datatype.

    `kind` determines the reductions that are defined on it; `code` is the result of `tocode` and
    `char` the result of `typechar`; `numpy` is the dtype of its elements, empty if numpy has none.
    """

    name: str
    mpi_name: str
    handle: int
    size: int
    kind: str
    code: str
    char: str
    numpy: str


def _named(table: str) -> tuple[NamedType, ...]:
    rows = []
    for line in table.strip().splitlines():
        name, mpi_name, handle, kind, code, char, dtype = line.split()
        number = int(handle, 16)
        # The second byte of a predefined handle is the size, in this ABI.
        size = number >> 8 & 0xFF
        standard = mpi_name if mpi_name[:3] == "MPI" else "MPI_" + mpi_name
        known = "" if dtype == "-" else dtype
        rows.append(NamedType(name, standard, number, size, kind, code, char, known))
    return tuple(rows)


# attribute, MPI's name, handle, kind, code, character, numpy dtype
NAMED = _named("""
PACKED                  PACKED                 0x4c00010f packed  B   B u1
BYTE                    BYTE                   0x4c00010d byte    B   B u1
AINT                    AINT                   0x4c000843 multi   p   p i8
OFFSET                  OFFSET                 0x4c000844 multi   p   p i8
COUNT                   COUNT                  0x4c000845 multi   p   p i8
CHAR                    CHAR                   0x4c000101 integer c   c i1
WCHAR                   WCHAR                  0x4c00040e char    U   U i4
SIGNED_CHAR             SIGNED_CHAR            0x4c000118 integer b   b i1
SHORT                   SHORT                  0x4c000203 integer h   h i2
INT                     INT                    0x4c000405 integer i   i i4
LONG                    LONG                   0x4c000807 integer l   l i8
LONG_LONG               LONG_LONG_INT          0x4c000809 integer q   q i8
UNSIGNED_CHAR           UNSIGNED_CHAR          0x4c000102 integer B   B u1
UNSIGNED_SHORT          UNSIGNED_SHORT         0x4c000204 integer H   H u2
UNSIGNED                UNSIGNED               0x4c000406 integer I   I u4
UNSIGNED_LONG           UNSIGNED_LONG          0x4c000808 integer L   L u8
UNSIGNED_LONG_LONG      UNSIGNED_LONG_LONG     0x4c000819 integer Q   Q u8
FLOAT                   FLOAT                  0x4c00040a real    f   f f4
DOUBLE                  DOUBLE                 0x4c00080b real    d   d f8
LONG_DOUBLE             LONG_DOUBLE            0x4c00100c real    g   g g
C_BOOL                  C_BOOL                 0x4c00013f logical b1  ? ?
INT8_T                  INT8_T                 0x4c000137 integer i1  b i1
INT16_T                 INT16_T                0x4c000238 integer i2  h i2
INT32_T                 INT32_T                0x4c000439 integer i4  i i4
INT64_T                 INT64_T                0x4c00083a integer i8  l i8
UINT8_T                 UINT8_T                0x4c00013b integer u1  B u1
UINT16_T                UINT16_T               0x4c00023c integer u2  H u2
UINT32_T                UINT32_T               0x4c00043d integer u4  I u4
UINT64_T                UINT64_T               0x4c00083e integer u8  L u8
FLOAT16_T               MPIX_C_FLOAT16         0x4c000246 real    e   e f2
C_COMPLEX               C_COMPLEX              0x4c000840 complex F   F c8
C_DOUBLE_COMPLEX        C_DOUBLE_COMPLEX       0x4c001041 complex D   D c16
C_LONG_DOUBLE_COMPLEX   C_LONG_DOUBLE_COMPLEX  0x4c002042 complex G   G G
CXX_BOOL                CXX_BOOL               0x4c000133 logical ?   ? ?
CXX_FLOAT_COMPLEX       CXX_FLOAT_COMPLEX      0x4c000834 complex F   F c8
CXX_DOUBLE_COMPLEX      CXX_DOUBLE_COMPLEX     0x4c001035 complex D   D c16
CXX_LONG_DOUBLE_COMPLEX CXX_LONG_DOUBLE_COMPLEX 0x4c002036 complex G  G G
CHARACTER               CHARACTER              0x4c00011a char    c   c i1
LOGICAL                 LOGICAL                0x4c00041d logical i   i i4
INTEGER                 INTEGER                0x4c00041b fortran i   i i4
REAL                    REAL                   0x4c00041c real    f   f f4
DOUBLE_PRECISION        DOUBLE_PRECISION       0x4c00081f real    d   d f8
COMPLEX                 COMPLEX                0x4c00081e complex F   F c8
DOUBLE_COMPLEX          DOUBLE_COMPLEX         0x4c001022 complex D   D c16
INTEGER1                INTEGER1               0x4c00012d fortran i1  b i1
INTEGER2                INTEGER2               0x4c00022f fortran i2  h i2
INTEGER4                INTEGER4               0x4c000430 fortran i4  i i4
INTEGER8                INTEGER8               0x4c000831 fortran i8  l i8
REAL4                   REAL4                  0x4c000427 real    f4  f f4
REAL8                   REAL8                  0x4c000829 real    f8  d f8
REAL16                  REAL16                 0x4c00102b real    f16 g -
COMPLEX8                COMPLEX8               0x4c000828 complex c8  F c8
COMPLEX16               COMPLEX16              0x4c00102a complex c16 D c16
COMPLEX32               COMPLEX32              0x4c00202c complex c32 G -
""")

# Pairs of a value and an index for MINLOC and MAXLOC: attribute, MPI's name, handle, members.
PAIRS = (
    ("SHORT_INT", "MPI_SHORT_INT", 0x8C000003, ("SHORT", "INT")),
    ("INT_INT", "MPI_2INT", 0x4C000816, ("INT", "INT")),
    ("LONG_INT", "MPI_LONG_INT", 0x8C000002, ("LONG", "INT")),
    ("FLOAT_INT", "MPI_FLOAT_INT", 0x8C000000, ("FLOAT", "INT")),
    ("DOUBLE_INT", "MPI_DOUBLE_INT", 0x8C000001, ("DOUBLE", "INT")),
    ("LONG_DOUBLE_INT", "MPI_LONG_DOUBLE_INT", 0x8C000004, ("LONG_DOUBLE", "INT")),
)
# The first handle that is free for a derived datatype.
FIRST_DERIVED = 0x8C000005

# Datatypes of programs in C and Fortran that mpi4py has no handles of: as `NAMED` and `PAIRS`.
COMPILED = _named("""
LOGICAL1                LOGICAL1               0x4c000147 logical i1  b i1
LOGICAL2                LOGICAL2               0x4c000248 logical i2  h i2
LOGICAL4                LOGICAL4               0x4c000449 logical i4  i i4
LOGICAL8                LOGICAL8               0x4c00084a logical i8  l i8
LOGICAL16               LOGICAL16              0x4c00104b logical i16 - -
INTEGER16               INTEGER16              0x4c001032 fortran i16 - -
REAL2                   REAL2                  0x4c000226 real    f2  e f2
COMPLEX4                COMPLEX4               0x4c00042e complex c4  E -
""")
COMPILED_PAIRS = (
    ("2INTEGER", "MPI_2INTEGER", 0x4C000820, ("INTEGER", "INTEGER")),
    ("2REAL", "MPI_2REAL", 0x4C000821, ("REAL", "REAL")),
    (
        "2DOUBLE_PRECISION",
        "MPI_2DOUBLE_PRECISION",
        0x4C001023,
        ("DOUBLE_PRECISION", "DOUBLE_PRECISION"),
    ),
)

# Names without a datatype in this ABI.
ABSENT = (
    "BFLOAT16_T",
    "LOGICAL1",
    "LOGICAL2",
    "LOGICAL4",
    "LOGICAL8",
    "LOGICAL16",
    "INTEGER16",
    "REAL2",
    "COMPLEX4",
)

# Other names of the same objects.
ALIASES = {
    "FLOAT32_T": "FLOAT",
    "FLOAT64_T": "DOUBLE",
    "C_FLOAT_COMPLEX": "C_COMPLEX",
    "TWOINT": "INT_INT",
    "UNSIGNED_INT": "UNSIGNED",
    "SIGNED_SHORT": "SHORT",
    "SIGNED_INT": "INT",
    "SIGNED_LONG": "LONG",
    "SIGNED_LONG_LONG": "LONG_LONG",
    "BOOL": "C_BOOL",
    "SINT8_T": "INT8_T",
    "SINT16_T": "INT16_T",
    "SINT32_T": "INT32_T",
    "SINT64_T": "INT64_T",
    "F_BOOL": "LOGICAL",
    "F_INT": "INTEGER",
    "F_FLOAT": "REAL",
    "F_DOUBLE": "DOUBLE_PRECISION",
    "F_COMPLEX": "COMPLEX",
    "F_FLOAT_COMPLEX": "COMPLEX",
    "F_DOUBLE_COMPLEX": "DOUBLE_COMPLEX",
}


def _codes(table: str) -> dict[str, str]:
    return {
        code: name for name, *codes in map(str.split, table.strip().splitlines()) for code in codes
    }


# Character codes and type strings -> datatype: those of numpy, of the buffer protocol, and F90's.
CODES = _codes("""
C_BOOL                 ? b1
SIGNED_CHAR            b
SHORT                  h
INT                    i
LONG                   l
LONG_LONG              q
UNSIGNED_CHAR          B
UNSIGNED_SHORT         H
UNSIGNED               I
UNSIGNED_LONG          L N P
UNSIGNED_LONG_LONG     Q
FLOAT16_T              e f2
FLOAT                  f f4
DOUBLE                 d f8
LONG_DOUBLE            g f16
C_COMPLEX              Zf F c8
C_DOUBLE_COMPLEX       Zd D c16
C_LONG_DOUBLE_COMPLEX  Zg G c32
INT8_T                 i1
INT16_T                i2
INT32_T                i4
INT64_T                i8 M M8 m m8
UINT8_T                u1
UINT16_T               u2 u 1u
UINT32_T               u4
UINT64_T               u8
COUNT                  n
AINT                   p
CHAR                   c a S S1 s 1s
WCHAR                  U U1 w 1w
""")
C_CODES = {
    code: CODES[code]
    for code in (
        "? b h i l q B H I L Q f d g F D G b1 i1 i2 i4 i8 u1 u2 u4 u8 f2 f4 c8 f8 c16 f16 c32"
    ).split()
}
F_CODES = _codes("""
LOGICAL           l
INTEGER           i
REAL              r s
DOUBLE_PRECISION  d
COMPLEX           c
DOUBLE_COMPLEX    z
INTEGER1          i1
INTEGER2          i2
INTEGER4          i4
INTEGER8          i8
REAL4             r4
REAL8             r8
REAL16            r16
COMPLEX8          c8
COMPLEX16         c16
COMPLEX32         c32
""")

# Match_size: (type class, size) -> datatype.
MATCHES = {
    ("INTEGER", 1): "INTEGER1",
    ("INTEGER", 2): "INTEGER2",
    ("INTEGER", 4): "INTEGER4",
    ("INTEGER", 8): "INTEGER8",
    ("REAL", 4): "REAL4",
    ("REAL", 8): "REAL8",
    ("REAL", 16): "REAL16",
    ("COMPLEX", 8): "COMPLEX8",
    ("COMPLEX", 16): "COMPLEX16",
    ("COMPLEX", 32): "COMPLEX32",
}

_KINDS = (
    {"?": "b", "S": "S", "c": "S", "U": "U"}
    | dict.fromkeys("bhilqp", "i")
    | dict.fromkeys("BHILQP", "u")
    | dict.fromkeys("efdg", "f")
    | dict.fromkeys("EFDG", "c")
)
# Characters by kind and size, for the Fortran types.
CHARACTERS = {
    ("i", 1): "b",
    ("i", 2): "h",
    ("i", 4): "i",
    ("i", 8): "l",
    ("f", 2): "e",
    ("f", 4): "f",
    ("f", 8): "d",
    ("f", 16): "g",
    ("c", 4): "E",
    ("c", 8): "F",
    ("c", 16): "D",
    ("c", 32): "G",
}


def typestr(char: str, size: int) -> str:
    """The type string of an element with this character code."""
    kind = _KINDS[char]
    return f"{kind}1" if kind in "SU" else f"{kind}{size}"


def alignment(named: NamedType) -> int:
    """Bytes to which the C compiler aligns the type."""
    if named.numpy:
        return np.dtype(named.numpy).alignment
    return 2 if named.size == 4 else 16  # COMPLEX4
