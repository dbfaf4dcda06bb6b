"""Futures and tasks come in the same order in each run."""

from __future__ import annotations

import time

import pysmpi


def test_futures_come_in_the_same_order_in_each_run() -> None:
    """Sets of them would have the order of their addresses, which other objects change."""

    def main() -> object:
        import asyncio
        from concurrent.futures import ThreadPoolExecutor, as_completed, wait

        async def one(i: int) -> int:
            begun.append(i)
            await asyncio.sleep(1.0)
            return i

        async def all_of_them() -> list[int]:
            found = [await each for each in asyncio.as_completed([one(i) for i in range(30)])]
            done, _ = await asyncio.wait([asyncio.ensure_future(one(i)) for i in range(30)])
            assert isinstance(done, set) and done == set(done)
            return found + [each.result() for each in done]

        begun: list[int] = []
        with ThreadPoolExecutor(4) as pool:
            futures = [pool.submit(int, i) for i in range(30)]
            time.sleep(1.0)
            completed = [each.result() for each in as_completed(futures)]
            done = [each.result() for each in wait(futures).done]
            assert len({*futures, *futures}) == 30 and futures[3] in set(futures)
        return completed, done, asyncio.run(all_of_them()), begun, time.monotonic()

    runs = []
    for size in (8, 1000, 100_000):
        others = [bytearray(size) for _ in range(500)]
        del others[::2]
        runs.append(pysmpi.run(main, 2, compute="none").returns)
    assert runs[1:] == [runs[0]] * 2
    in_order = [*range(30)]
    # `as_completed` takes finished futures from the end of a list.
    assert runs[0][0][:4] == (in_order[::-1], in_order, in_order * 2, in_order * 2)
