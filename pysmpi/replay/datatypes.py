"""Sizes (bytes) of the datatypes that time-independent traces name by a number."""

from __future__ import annotations

DOUBLE, BYTE = 0, 6

# DOUBLE, INT, CHAR, SHORT, LONG, FLOAT, BYTE, LONG_LONG, SIGNED_CHAR, UNSIGNED_CHAR,
# UNSIGNED_SHORT, UNSIGNED, UNSIGNED_LONG, UNSIGNED_LONG_LONG, LONG_DOUBLE, WCHAR, C_BOOL,
# INT8 to INT64, UINT8 to UINT64, C_FLOAT_COMPLEX to C_LONG_DOUBLE_COMPLEX, AINT, OFFSET,
# FLOAT_INT, LONG_INT, DOUBLE_INT, SHORT_INT, 2INT, 2FLOAT, 2DOUBLE, 2LONG,
# REAL, REAL4, REAL8, REAL16, COMPLEX8 to COMPLEX32, INTEGER1 to INTEGER16, LONG_DOUBLE_INT,
# CXX_BOOL, CXX complex of three precisions, UB, LB, PACKED, a pointer, COUNT.
SIZES: tuple[int, ...] = (
    8, 4, 1, 2, 8, 4, 1, 8, 1, 1,
    2, 4, 8, 8, 16, 4, 1,
    1, 2, 4, 8, 1, 2, 4, 8, 8, 16, 32, 8, 8,
    8, 16, 16, 8, 8, 8, 16, 16,
    4, 4, 8, 16, 8, 16, 32, 1, 2, 4, 8, 16, 32,
    1, 8, 16, 32, 0, 0, 1, 8, 8,
)  # fmt: skip
