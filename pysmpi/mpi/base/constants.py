"""The integer constants of MPI.

The values are those of the MPICH ABI, so that a number which a program prints, stores or passes
through a buffer means the same as under a real library. The fault-tolerance classes have the values
of MPICH's ``MPIX_ERR_*``. ``UNWEIGHTED`` and ``WEIGHTS_EMPTY`` are addresses in a C library; here
they are two numbers that differ from every list of weights.
"""

from typing import Final

# Wildcards and special ranks (MPI 4.1, A.1.1).
UNDEFINED: Final = -32766
ANY_SOURCE: Final = -2
ANY_TAG: Final = -1
PROC_NULL: Final = -1
ROOT: Final = -3

# Keyvals of the predefined attributes.
KEYVAL_INVALID: Final = 0x24000000
TAG_UB: Final = 0x64400001
IO: Final = 0x64400005
WTIME_IS_GLOBAL: Final = 0x64400007
UNIVERSE_SIZE: Final = 0x64400009
APPNUM: Final = 0x6440000D
LASTUSEDCODE: Final = 0x6440000B
WIN_BASE: Final = 0x66000001
WIN_SIZE: Final = 0x66000003
WIN_DISP_UNIT: Final = 0x66000005
WIN_CREATE_FLAVOR: Final = 0x66000007
WIN_FLAVOR: Final = WIN_CREATE_FLAVOR
WIN_MODEL: Final = 0x66000009

# Error classes.
SUCCESS: Final = 0
ERR_LASTCODE: Final = 0x3FFFFFFF
ERR_ABI: Final = 81
ERR_TYPE: Final = 3
ERR_REQUEST: Final = 19
ERR_OP: Final = 9
ERR_GROUP: Final = 8
ERR_INFO: Final = 28
ERR_ERRHANDLER: Final = 80
ERR_SESSION: Final = 75
ERR_COMM: Final = 5
ERR_WIN: Final = 45
ERR_FILE: Final = 27
ERR_BUFFER: Final = 1
ERR_COUNT: Final = 2
ERR_TAG: Final = 4
ERR_RANK: Final = 6
ERR_ROOT: Final = 7
ERR_TRUNCATE: Final = 14
ERR_IN_STATUS: Final = 17
ERR_PENDING: Final = 18
ERR_TOPOLOGY: Final = 10
ERR_DIMS: Final = 11
ERR_ARG: Final = 12
ERR_OTHER: Final = 15
ERR_UNKNOWN: Final = 13
ERR_INTERN: Final = 16
ERR_KEYVAL: Final = 48
ERR_NO_MEM: Final = 34
ERR_INFO_KEY: Final = 29
ERR_INFO_VALUE: Final = 30
ERR_INFO_NOKEY: Final = 31
ERR_SPAWN: Final = 42
ERR_PORT: Final = 38
ERR_SERVICE: Final = 41
ERR_NAME: Final = 33
ERR_PROC_ABORTED: Final = 76
ERR_BASE: Final = 46
ERR_SIZE: Final = 51
ERR_DISP: Final = 52
ERR_ASSERT: Final = 53
ERR_LOCKTYPE: Final = 47
ERR_RMA_CONFLICT: Final = 49
ERR_RMA_SYNC: Final = 50
ERR_RMA_RANGE: Final = 55
ERR_RMA_ATTACH: Final = 56
ERR_RMA_SHARED: Final = 57
ERR_RMA_FLAVOR: Final = 58
ERR_BAD_FILE: Final = 22
ERR_NO_SUCH_FILE: Final = 37
ERR_FILE_EXISTS: Final = 25
ERR_FILE_IN_USE: Final = 26
ERR_AMODE: Final = 21
ERR_ACCESS: Final = 20
ERR_READ_ONLY: Final = 40
ERR_NO_SPACE: Final = 36
ERR_QUOTA: Final = 39
ERR_NOT_SAME: Final = 35
ERR_IO: Final = 32
ERR_UNSUPPORTED_OPERATION: Final = 44
ERR_UNSUPPORTED_DATAREP: Final = 43
ERR_CONVERSION: Final = 23
ERR_DUP_DATAREP: Final = 24
ERR_VALUE_TOO_LARGE: Final = 77
ERR_REVOKED: Final = 103
ERR_PROC_FAILED: Final = 101
ERR_PROC_FAILED_PENDING: Final = 102

# Arguments of the datatype constructors, and results of Get_envelope.
ORDER_C: Final = 56
ORDER_FORTRAN: Final = 57
ORDER_F: Final = ORDER_FORTRAN
TYPECLASS_LOGICAL: Final = 4
TYPECLASS_INTEGER: Final = 2
TYPECLASS_REAL: Final = 1
TYPECLASS_COMPLEX: Final = 3
DISTRIBUTE_NONE: Final = 123
DISTRIBUTE_BLOCK: Final = 121
DISTRIBUTE_CYCLIC: Final = 122
DISTRIBUTE_DFLT_DARG: Final = -49767
COMBINER_NAMED: Final = 1
COMBINER_DUP: Final = 2
COMBINER_CONTIGUOUS: Final = 3
COMBINER_VECTOR: Final = 4
COMBINER_HVECTOR: Final = 6
COMBINER_INDEXED: Final = 7
COMBINER_HINDEXED: Final = 9
COMBINER_INDEXED_BLOCK: Final = 10
COMBINER_HINDEXED_BLOCK: Final = 19
COMBINER_STRUCT: Final = 12
COMBINER_SUBARRAY: Final = 13
COMBINER_DARRAY: Final = 14
COMBINER_RESIZED: Final = 18
COMBINER_VALUE_INDEX: Final = 20
COMBINER_F90_INTEGER: Final = 17
COMBINER_F90_REAL: Final = 15
COMBINER_F90_COMPLEX: Final = 16

# The places of the fields of a Fortran status.
F_SOURCE: Final = 2
F_TAG: Final = 3
F_ERROR: Final = 4
F_STATUS_SIZE: Final = 5

# Results of comparisons.
IDENT: Final = 0
CONGRUENT: Final = 1
SIMILAR: Final = 2
UNEQUAL: Final = 3

# Topologies. The two weights are compared by identity (``is``).
CART: Final = 2
GRAPH: Final = 1
DIST_GRAPH: Final = 3
UNWEIGHTED: Final = 0x7F5000000008
WEIGHTS_EMPTY: Final = 0x7F500000000C

# Kinds of Split_type.
COMM_TYPE_SHARED: Final = 1
COMM_TYPE_HW_GUIDED: Final = 2
COMM_TYPE_HW_UNGUIDED: Final = 3
COMM_TYPE_RESOURCE_GUIDED: Final = 4

# Bytes that a buffered send needs beside its data.
BSEND_OVERHEAD: Final = 96

# Windows.
WIN_FLAVOR_CREATE: Final = 1
WIN_FLAVOR_ALLOCATE: Final = 2
WIN_FLAVOR_DYNAMIC: Final = 3
WIN_FLAVOR_SHARED: Final = 4
WIN_SEPARATE: Final = 1
WIN_UNIFIED: Final = 2
MODE_NOCHECK: Final = 1024
MODE_NOSTORE: Final = 2048
MODE_NOPUT: Final = 4096
MODE_NOPRECEDE: Final = 8192
MODE_NOSUCCEED: Final = 16384
LOCK_EXCLUSIVE: Final = 234
LOCK_SHARED: Final = 235

# Files.
MODE_RDONLY: Final = 2
MODE_WRONLY: Final = 4
MODE_RDWR: Final = 8
MODE_CREATE: Final = 1
MODE_EXCL: Final = 64
MODE_DELETE_ON_CLOSE: Final = 16
MODE_UNIQUE_OPEN: Final = 32
MODE_SEQUENTIAL: Final = 256
MODE_APPEND: Final = 128
SEEK_SET: Final = 600
SEEK_CUR: Final = 602
SEEK_END: Final = 604
DISPLACEMENT_CURRENT: Final = -54278278
DISP_CUR: Final = DISPLACEMENT_CURRENT

# Thread levels.
THREAD_SINGLE: Final = 0
THREAD_FUNNELED: Final = 1
THREAD_SERIALIZED: Final = 2
THREAD_MULTIPLE: Final = 3

# The standard that the names follow, and the lengths of strings.
VERSION: Final = 4
SUBVERSION: Final = 1
MAX_PROCESSOR_NAME: Final = 128
MAX_ERROR_STRING: Final = 512
MAX_PORT_NAME: Final = 1024
MAX_INFO_KEY: Final = 255
MAX_INFO_VAL: Final = 1024
MAX_OBJECT_NAME: Final = 128
MAX_DATAREP_STRING: Final = 128
MAX_LIBRARY_VERSION_STRING: Final = 8192
MAX_PSET_NAME_LEN: Final = 256
MAX_STRINGTAG_LEN: Final = 256

__all__ = [name for name in dir() if name.isupper()]
