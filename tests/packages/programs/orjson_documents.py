"""Documents of orjson: dumped with options, loaded, exchanged as bytes."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import uuid

import numpy as np
import orjson
from mpi4py import MPI

comm = MPI.COMM_WORLD


class Kind(enum.Enum):
    small = "s"
    large = "l"


@dataclasses.dataclass
class Record:
    name: str
    kind: Kind
    when: datetime.datetime
    values: np.ndarray


record = Record(
    f"räksmörgås {comm.rank}",
    Kind.large if comm.rank % 2 else Kind.small,
    datetime.datetime(2020, 2, 29, 12, comm.rank, tzinfo=datetime.UTC),
    np.linspace(0, comm.rank, 5),
)
options = orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_SORT_KEYS | orjson.OPT_NAIVE_UTC
text = orjson.dumps(record, option=options)
print(comm.rank, text.decode())
sizes = np.array(comm.allgather(len(text)))
gathered = bytearray(int(sizes.sum()))
comm.Allgatherv(text, [gathered, sizes])
ends = np.cumsum(sizes)
records = [orjson.loads(gathered[end - size : end]) for end, size in zip(ends, sizes)]
print(comm.rank, sum(one["values"][-1] for one in records), [one["kind"] for one in records])
nested = {str(k): {uuid.UUID(int=k): [k, k / 3, None, True]} for k in range(20 + comm.rank)}
dumped = orjson.dumps(nested, option=orjson.OPT_NON_STR_KEYS | orjson.OPT_INDENT_2)
print(comm.rank, len(dumped), orjson.loads(dumped)["7"])
for bad in (b'{"a": 1,}', b"[1, 2", b'"\xff"'):
    try:
        orjson.loads(bad)
    except orjson.JSONDecodeError as error:
        print(comm.rank, error.lineno, error.colno, error.msg)
try:
    orjson.dumps({"x": object()})
except TypeError as error:
    print(comm.rank, error)
print(comm.rank, orjson.dumps({"x": comm.rank + 2j}, default=lambda z: [z.real, z.imag]).decode())
