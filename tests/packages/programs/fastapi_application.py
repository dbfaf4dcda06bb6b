"""A FastAPI application in each rank: validation, dependencies, errors, its schema."""

from __future__ import annotations

import asyncio

import httpx
from fastapi import Depends, FastAPI, HTTPException, Query
from mpi4py import MPI
from pydantic import BaseModel, Field

comm = MPI.COMM_WORLD
app = FastAPI(title=f"rank {comm.rank}")


class Vector(BaseModel):
    values: list[float] = Field(min_length=1)


def scale(by: float = Query(1.0, gt=0)) -> float:
    return by * (comm.rank + 1)


@app.post("/norm")
async def norm(vector: Vector, factor: float = Depends(scale)) -> dict[str, float]:
    await asyncio.sleep(0)
    return {"norm": factor * sum(x * x for x in vector.values) ** 0.5}


@app.get("/items/{number}")
def item(number: int) -> dict[str, int]:
    if number > 5:
        raise HTTPException(404, f"no item {number}")
    return {"number": number, "rank": comm.rank}


async def main() -> None:
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url="http://t") as client:
        answers = [
            await client.post("/norm?by=2", json={"values": [3, 4]}),
            await client.post("/norm?by=-1", json={"values": []}),
            await client.get(f"/items/{4 + comm.rank}"),
            await client.get("/items/x"),
        ]
        schema = (await client.get("/openapi.json")).json()
    for answer in answers:
        data = answer.json()
        print(
            comm.rank,
            answer.status_code,
            data if "detail" not in data else str(data["detail"])[:90],
        )
    print(comm.rank, schema["info"]["title"], sorted(schema["paths"]))


asyncio.run(main())
print(comm.rank, comm.allgather(app.title))
