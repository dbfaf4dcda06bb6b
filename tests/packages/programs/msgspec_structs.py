"""Structs of msgspec: encoded as JSON and MessagePack, validated, exchanged."""

from __future__ import annotations

from typing import Annotated, Union

import msgspec
from mpi4py import MPI

comm = MPI.COMM_WORLD


class Point(msgspec.Struct, tag=True, frozen=True):
    x: float
    y: Annotated[float, msgspec.Meta(ge=0)] = 0.0


class Line(msgspec.Struct, tag=True):
    points: list[Point]
    name: str | None = None


Shape = Union[Point, Line]
mine: list[Shape] = [
    Point(comm.rank + 0.5),
    Line([Point(k, k / 7) for k in range(comm.rank + 2)], "l"),
]
packed = msgspec.msgpack.encode(mine)
print(comm.rank, len(packed), msgspec.json.encode(mine).decode())
decoder = msgspec.msgpack.Decoder(list[Shape])
everything = [shape for one in comm.allgather(packed) for shape in decoder.decode(one)]
print(
    comm.rank, len(everything), sum(len(one.points) for one in everything if isinstance(one, Line))
)
print(comm.rank, everything[(2 * comm.rank + 3) % len(everything)])
for bad in (b'{"type":"Point","x":"a"}', b'{"type":"Point","x":1,"y":-1}', b'{"type":"Ring"}'):
    try:
        msgspec.json.decode(bad, type=Shape)
    except msgspec.ValidationError as error:
        print(comm.rank, error)
print(comm.rank, msgspec.json.schema(Line)["$defs"].keys())
print(
    comm.rank,
    msgspec.structs.replace(everything[0], y=9.0),
    hash(Point(1.0, 2.0)) == hash(Point(1.0, 2.0)),
)
print(
    comm.rank,
    msgspec.convert({"type": "Line", "points": [{"type": "Point", "x": comm.rank}]}, Shape),
)
