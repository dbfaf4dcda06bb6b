"""Models of pydantic: validated, serialised, sent to other ranks, refused with reasons."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Literal, Union

from mpi4py import MPI
from pydantic import BaseModel, Field, TypeAdapter, ValidationError, computed_field, field_validator

comm = MPI.COMM_WORLD


class Circle(BaseModel):
    kind: Literal["circle"] = "circle"
    radius: float = Field(gt=0)

    @computed_field
    @property
    def area(self) -> float:
        return 3.141592653589793 * self.radius**2


class Box(BaseModel):
    kind: Literal["box"] = "box"
    sides: tuple[float, float]

    @field_validator("sides")
    @classmethod
    def ordered(cls, sides: tuple[float, float]) -> tuple[float, float]:
        if sides[0] > sides[1]:
            raise ValueError("the first side is the shorter one")
        return sides


class Job(BaseModel):
    rank: int
    limit: timedelta
    shapes: list[Annotated[Union[Circle, Box], Field(discriminator="kind")]]


job = Job.model_validate(
    {
        "rank": str(comm.rank),
        "limit": f"PT{comm.rank + 1}H30M",
        "shapes": [{"kind": "circle", "radius": comm.rank + 1}, {"kind": "box", "sides": ["1", 2]}],
    }
)
print(comm.rank, job.model_dump_json())
jobs = comm.allgather(job)
print(comm.rank, jobs[comm.rank] == job, sum(one.shapes[0].area for one in jobs))
text = comm.sendrecv(
    job.model_dump_json(), (comm.rank + 1) % comm.size, source=(comm.rank - 1) % comm.size
)
print(comm.rank, Job.model_validate_json(text).limit.total_seconds())
for bad in (
    {"rank": "x", "limit": 1, "shapes": []},
    {"rank": 1, "limit": 1, "shapes": [{"kind": "box", "sides": [2, 1]}]},
    {"rank": 1, "limit": 1, "shapes": [{"kind": "star"}]},
):
    try:
        Job.model_validate(bad)
    except ValidationError as error:
        print(comm.rank, [(one["loc"], one["type"], one["msg"]) for one in error.errors()])
print(comm.rank, sorted(Job.model_json_schema()["$defs"]))
print(
    comm.rank, TypeAdapter(dict[int, set[complex | str]]).validate_python({"1": {comm.rank + 1j}})
)
