"""asyncio in ranks: timers in virtual time, a running loop for each thread."""

from __future__ import annotations

import pytest

import pysmpi


def run(main, size=1, **options):
    return pysmpi.run(main, size, **{"compute": "none", **options})


@pytest.mark.parametrize("compute", ["none", "native"])
def test_a_sleep_takes_virtual_time(compute):
    def main():
        import asyncio
        import time

        begin = time.monotonic()
        asyncio.run(asyncio.sleep(2000.0))
        return time.monotonic() - begin

    result = run(main, 3, compute=compute)
    assert result.returns == pytest.approx([2000.0] * 3, abs=1.0)
    assert result.wall_seconds < 0.1 * result.seconds


def test_loops_of_ranks_that_communicate_in_coroutines():
    def main():
        import asyncio
        import time

        from mpi4py import MPI

        world = MPI.COMM_WORLD

        async def work():
            loop = asyncio.get_running_loop()
            ticks = []

            async def tick():
                while True:
                    await asyncio.sleep(0.1)
                    ticks.append(time.monotonic())

            task = asyncio.create_task(tick())
            await asyncio.sleep(0.38 * (world.rank + 1))
            total = world.allreduce(world.rank)
            task.cancel()
            return loop is asyncio.get_running_loop(), total, len(ticks)

        return asyncio.run(work())

    assert run(main, 2).returns == [(True, 1, 3), (True, 1, 7)]


def test_a_loop_in_a_thread_answers_another_thread():
    def main():
        import asyncio
        import threading

        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=loop.run_forever)
        thread.start()
        future = asyncio.run_coroutine_threadsafe(asyncio.sleep(5.0, "slept"), loop)
        answer = future.result(10.0)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
        return answer

    result = run(main, 2)
    assert result.returns == ["slept"] * 2
    assert result.seconds == pytest.approx(5.0, abs=0.01)


def test_streams_between_ranks():
    def main():
        import asyncio

        from mpi4py import MPI

        world = MPI.COMM_WORLD

        async def serve():
            served = asyncio.Event()

            async def handle(reader, writer):
                line = await reader.readline()
                await asyncio.sleep(2.0)
                writer.write(line.upper())
                await writer.drain()
                writer.close()
                served.set()

            server = await asyncio.start_server(handle, "127.0.0.1", 0)
            world.bcast(server.sockets[0].getsockname()[1])
            await served.wait()
            server.close()
            return "served"

        async def ask():
            reader, writer = await asyncio.open_connection("127.0.0.1", world.bcast(None))
            writer.write(b"hello\n")
            answer = await reader.readline()
            writer.close()
            return answer

        return asyncio.run(serve() if world.rank == 0 else ask())

    result = run(main, 2)
    assert result.returns == ["served", b"HELLO\n"]
    assert result.seconds == pytest.approx(2.0, abs=0.01)


def test_a_child_process_of_a_loop():
    def main():
        import asyncio

        async def work():
            child = await asyncio.create_subprocess_exec(
                "sh", "-c", "sleep 0.1; echo out; exit 2", stdout=asyncio.subprocess.PIPE
            )
            output, _ = await child.communicate()
            return output, child.returncode

        return asyncio.run(work())

    assert run(main, 2).returns == [(b"out\n", 2)] * 2


def test_asynchronous_generators_of_two_loops():
    def main():
        import asyncio
        import sys

        async def numbers():
            for i in range(3):
                await asyncio.sleep(0.1)
                yield i

        async def work():
            return [i async for i in numbers()]

        return asyncio.run(work()), sys.get_asyncgen_hooks() == (None, None)

    assert run(main, 3).returns == [([0, 1, 2], True)] * 3


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_loop_that_hears_of_its_child_by_a_signal():
    def main():
        import asyncio
        import os
        import signal

        async def work():
            ended = asyncio.Event()
            asyncio.get_running_loop().add_signal_handler(signal.SIGCHLD, ended.set)
            pid = os.posix_spawn("/bin/sh", ["sh", "-c", "sleep 0.2; exit 4"], os.environ)
            await ended.wait()
            return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

        return asyncio.run(work())

    assert run(main).returns == [4]
