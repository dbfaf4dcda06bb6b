"""Threads of ranks: the modules of Python that build on threads, in virtual time."""

from __future__ import annotations

import threading
import types
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pysmpi.isolation.kinds.rank_environment import Invocation, RankEnvironment
from pysmpi.isolation.loading.loader import FunctionProgram
from pysmpi.isolation.threads import locks
from pysmpi.job.interpreter import Interpreter
from pysmpi.mpi.base.ranks import FreeTransport, Rank, current
from pysmpi.platform.model import Host
from pysmpi.platform.placement import Slot
from pysmpi.ranks.outcomes import RankState
from pysmpi.ranks.simulation import Simulation


class InterpretedRanks:
    """The lifecycle of ranks that run the program of an interpreter."""

    def __init__(self, interpreter: Interpreter, size: int) -> None:
        self.interpreter = interpreter
        self.size = size

    def equip(self, rank: Rank) -> None:
        rank.program = RankEnvironment(rank.pid, Invocation(self.size))

    def begin(self, rank: Rank) -> Callable[[], object]:
        return self.interpreter.begin()

    def end(self, rank: Rank, error: BaseException | None) -> None:
        self.interpreter.end(rank.program, error)


def run(main: Any, size: int = 1, states: Any = RankState.FINISHED) -> list[Any]:
    """Run `main` in ranks of the real engine; return their results."""
    host = Host("here", 0, (1e9,), 64)
    simulation = Simulation(FreeTransport(), [Slot(host, core) for core in range(size)])
    program = FunctionProgram(main)
    with Interpreter(
        program, mpi=types.ModuleType("mpi4py.MPI"), start_fiber=simulation.start_thread
    ) as interpreter:
        simulation.door.exchange = interpreter.exchange

        simulation.add_world(range(size), InterpretedRanks(interpreter, size))
        simulation.run()
    for outcome in simulation.outcomes:
        if outcome.error is not None:
            raise outcome.error
        assert outcome.state is states
    return [outcome.value for outcome in simulation.outcomes]


def test_a_thread_runs_beside_its_rank():
    import time

    def main():
        seen = []

        def work(name):
            time.sleep(2.0)
            seen.append((name, time.monotonic()))

        thread = threading.Thread(target=work, args=("worker",))
        assert not thread.is_alive()
        thread.start()
        time.sleep(1.0)
        seen.append(("main", time.monotonic()))
        assert thread.is_alive()
        thread.join(0.5)
        assert thread.is_alive()
        thread.join()
        assert not thread.is_alive()
        assert threading.current_thread() is threading.main_thread()
        return [name for name, _ in seen], round(time.monotonic(), 3)

    assert run(main, 2) == [(["main", "worker"], 2.0)] * 2


def test_threads_know_who_they_are():
    def main():
        found = []

        def work():
            me = threading.current_thread()
            found.append((me.name, me.ident == threading.get_ident(), threading.active_count()))
            assert threading.main_thread().name == "MainThread" != me.name
            go_on.wait()

        go_on = threading.Event()
        thread = threading.Thread(target=work, name="worker")
        assert threading.enumerate() == [threading.main_thread()]
        thread.start()
        assert threading.enumerate() == [threading.main_thread(), thread]
        go_on.set()
        thread.join()
        assert threading.current_thread().name == "MainThread"
        assert threading.current_thread().is_alive()
        assert not threading.current_thread().daemon
        return found, threading.get_ident()

    before = set(threading.enumerate())  # those of other tests may end meanwhile
    (found, first), (_, second) = run(main, 2)
    assert found == [("worker", True, 2)]
    assert first != second
    assert set(threading.enumerate()) <= before
    assert threading.current_thread() is threading.main_thread()


def test_events_and_conditions_wait_in_virtual_time():
    import time

    def main():
        event, condition = threading.Event(), threading.Condition()
        order = []

        def work():
            event.wait()
            order.append("event")
            with condition:
                condition.wait_for(lambda: "ready" in order)
                order.append("condition")

        thread = threading.Thread(target=work)
        thread.start()
        assert not event.wait(0.25)
        assert round(time.monotonic(), 3) == 0.25
        event.set()
        time.sleep(0.1)
        with condition:
            assert not condition.wait(0.5)
            order.append("ready")
            condition.notify_all()
        thread.join()
        return order, round(time.monotonic(), 3)

    assert run(main) == [(["event", "ready", "condition"], 0.85)]


def test_locks_exclude_and_time_out():
    import time

    def main():
        lock, again = threading.Lock(), threading.RLock()
        inside = []

        def work(number):
            with lock, again, again:
                inside.append(number)
                time.sleep(1.0)
                assert inside[-1] == number

        threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
        for thread in threads:
            thread.start()
        assert not lock.acquire(False)
        assert not lock.acquire(timeout=0.5)
        assert not again.acquire(timeout=0.25)
        assert lock.locked()
        for thread in threads:
            thread.join()
        with pytest.raises(RuntimeError):
            lock.release()
        with pytest.raises(RuntimeError):
            again.release()
        with pytest.raises(ValueError):
            lock.acquire(False, 1)
        assert again.acquire() and again.acquire(blocking=False)
        return inside, round(time.monotonic(), 2)

    assert run(main) == [([0, 1, 2], 3.0)]


def test_other_primitives_work():
    import time

    def main():
        log = []
        semaphore = threading.BoundedSemaphore(2)
        barrier = threading.Barrier(3)
        timer = threading.Timer(5.0, log.append, ["timer"])
        timer.start()

        def work(number):
            with semaphore:
                time.sleep(1.0)
            barrier.wait()
            log.append(round(time.monotonic(), 2))

        threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        timer.join()
        return log

    assert run(main) == [[2.0, 2.0, 2.0, "timer"]]


def test_data_of_a_thread_is_its_own():
    import time

    class Local(threading.local):
        value = 0

    def main():
        class Mine(threading.local):
            def __init__(self, start):
                self.value = start

        data = [threading.local(), Mine(5)]
        data[0].value = "main"
        data[1].value += current().pid
        seen = []

        def work():
            seen.append((hasattr(data[0], "value"), data[1].value))
            data[0].value = "worker"
            time.sleep(1)

        thread = threading.Thread(target=work)
        thread.start()
        time.sleep(0.5)
        assert data[0].value == "main"
        thread.join()
        return seen, data[1].value

    assert run(main, 2) == [([(False, 5)], 5), ([(False, 5)], 6)]


def test_queues_wait_in_virtual_time():
    import queue
    import time

    def main(kind):
        def start():
            items = kind()
            got = []

            def work():
                while True:
                    item = items.get()
                    if item is None:
                        return
                    got.append((item, round(time.monotonic(), 2)))

            thread = threading.Thread(target=work)
            thread.start()
            with pytest.raises(queue.Empty):
                kind().get(timeout=0.5)
            with pytest.raises(queue.Empty):
                kind().get_nowait()
            items.put("a")
            time.sleep(1)
            items.put("b")
            items.put(None)
            thread.join()
            return got

        return start

    expected = [("a", 0.5), ("b", 1.5)]
    assert run(main(queue.Queue)) == [expected]
    assert run(main(lambda: queue.SimpleQueue())) == [expected]


def test_thread_pools_compute_at_the_same_time():
    import time
    from concurrent.futures import ThreadPoolExecutor, TimeoutError, as_completed, wait

    def main():
        def work(seconds):
            time.sleep(seconds)
            return seconds

        with ThreadPoolExecutor(4) as pool:
            assert list(pool.map(work, [3.0, 1.0, 2.0])) == [3.0, 1.0, 2.0]
            assert round(time.monotonic(), 2) == 3.0
            futures = [pool.submit(work, seconds) for seconds in (3.0, 1.0)]
            with pytest.raises(TimeoutError):
                futures[0].result(timeout=0.5)
            assert [future.result() for future in as_completed(futures)] == [1.0, 3.0]
            assert not wait([pool.submit(work, 1.0)], timeout=0.25).done
            failing = pool.submit(lambda: 1 // 0)
            assert isinstance(failing.exception(), ZeroDivisionError)
        return round(time.monotonic(), 2)

    assert run(main, 2) == [7.0, 7.0]


def test_values_of_a_thread_end_with_it_and_cost_little():
    import gc
    import time
    import timeit
    import weakref

    def main():
        class Thing:
            pass

        data, found = threading.local(), []
        data.mine = 1

        def work():
            assert not hasattr(data, "mine")
            data.thing = Thing()
            found.append(weakref.ref(data.thing))
            assert data.__dict__.keys() == {"thing"}
            del data.thing
            data.thing = Thing()
            found.append(weakref.ref(data.thing))

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        assert data.mine == 1
        time.sleep(1e-3)  # it ends after those that join it may go on
        del thread
        gc.collect()
        with pytest.raises(AttributeError, match="read-only"):
            data.__dict__ = {}
        with pytest.raises(TypeError, match="Initialization arguments are not supported"):
            threading.local(1)

        class Plain:
            mine = 1

            def get(self):
                return self.mine

        plain = Plain()
        one = min(timeit.repeat(lambda: data.mine, number=2000, repeat=5))
        other = min(timeit.repeat(plain.get, number=2000, repeat=5))
        return [one() for one in found], type(data).__name__, one < 25 * other

    assert run(main, 2) == [([None, None], "_local", True)] * 2


def test_polling_comes_to_an_end():
    import time
    from concurrent.futures import ThreadPoolExecutor

    def main():
        import queue

        event, items, lock = threading.Event(), queue.Queue(), threading.Lock()
        lock.acquire()

        def work():
            time.sleep(1e-5)
            event.set()
            time.sleep(1e-5)
            items.put(1)
            time.sleep(1e-5)
            lock.release()
            time.sleep(1e-5)

        with ThreadPoolExecutor(1) as pool:
            future = pool.submit(work)
            while not event.is_set():
                pass
            while items.empty():
                pass
            while not lock.acquire(False):
                pass
            while not future.done():
                pass
            other = threading.Thread(target=time.sleep, args=(1e-5,))
            other.start()
            while other.is_alive():
                pass
        return True

    assert run(main, 2) == [True, True]


@pytest.mark.parametrize("kind", ["Lock", "RLock", "Condition"])
def test_a_loop_that_looks_under_a_lock_comes_to_an_end(kind):
    import time

    def main():
        lock, found = getattr(threading, kind)(), []

        def work():
            time.sleep(1e-5)
            with lock:
                found.append(1)

        threading.Thread(target=work).start()
        for _ in range(1_000_000):
            with lock:
                if found:
                    return True
        return False

    assert run(main, 2) == [True, True]


def test_a_lock_from_before_the_run_lets_its_holder_go_on(monkeypatch):
    import tempfile
    import time

    class Keeper:
        lock = threading.Lock()

    import fractions

    monkeypatch.setattr(fractions, "lock", threading.Lock(), raising=False)
    Keeper.__module__ = "fractions"
    monkeypatch.setattr(fractions, "Keeper", Keeper, raising=False)
    before = tempfile._once_lock, fractions.lock, Keeper.lock

    def main():
        began = time.monotonic()
        for find in (
            lambda: tempfile._once_lock,
            lambda: fractions.lock,
            lambda: Keeper.lock,
        ):
            with find():
                time.sleep(1.0)
        return round(time.monotonic() - began)

    assert run(main, 2) == [3, 4]
    assert before == (tempfile._once_lock, fractions.lock, Keeper.lock)


def test_a_loop_that_waits_for_futures_that_are_done_comes_to_an_end():
    import time

    def main():
        from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait

        with ThreadPoolExecutor(2) as pool:
            futures = [pool.submit(time.sleep, 1e-5 * i) for i in range(2)]
            for _ in range(1_000):
                if len(wait(futures, return_when=FIRST_COMPLETED).done) == 2:
                    return True
        return False

    assert run(main, 2) == [True, True]


def test_a_rank_waits_for_its_threads_at_its_end():
    import atexit
    import time

    log = []

    def main():
        from concurrent.futures import ThreadPoolExecutor

        pid = current().pid

        def work(name):
            time.sleep(1.0 + pid)
            log.append((pid, name))

        threading.Thread(target=work, args=("thread",)).start()
        threading.Thread(target=time.sleep, args=(1e9,), daemon=True).start()
        ThreadPoolExecutor(1).submit(work, "pool")
        atexit.register(lambda: log.append((pid, "exit")))

    run(main, 2)
    assert sorted(log[:2]) == [(0, "pool"), (0, "thread")]
    assert log[2] == (0, "exit")
    assert sorted(log[3:5]) == [(1, "pool"), (1, "thread")]


def test_exceptions_in_threads_are_shown(capsys, monkeypatch):
    import _thread

    def main():
        def fail():
            raise ValueError("in a thread")

        thread = threading.Thread(target=fail)
        thread.start()
        thread.join()
        number = _thread.start_new_thread(fail, ())
        assert isinstance(number, int)
        _thread.start_new_thread(_thread.exit, ())
        import time

        time.sleep(1)

    monkeypatch.setattr(threading, "excepthook", threading.__excepthook__)  # not pytest's
    run(main)
    err = capsys.readouterr().err
    assert err.count("ValueError: in a thread") == 2
    assert "SystemExit" not in err


def test_threads_outside_of_ranks_are_real_ones():
    seen = []

    class Watching(FunctionProgram):
        def prepare(self):
            thread = threading.Thread(target=lambda: seen.append(threading.get_native_id()))
            thread.start()
            thread.join()

    def main():
        return threading.get_native_id()

    lock_type = type(threading.Lock())
    with Interpreter(Watching(main), start_fiber=lambda *arguments: None):
        assert type(threading.Lock()) is lock_type
        thread = threading.Thread(target=lambda: seen.append(threading.get_native_id()))
        thread.start()
        thread.join()
    assert len(seen) == 2
    assert threading.get_native_id() not in seen
    assert type(threading.Lock()) is lock_type


def test_locks_belong_to_imports_whatever_rank_is_running(tmp_path, monkeypatch):
    """Ranks that import the same module at the same time do not wait for each other."""
    import time

    (tmp_path / "imported_slowly.py").write_text("import time\ntime.sleep(1)\nvalue = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))

    def main():
        import imported_slowly

        return imported_slowly.value, round(time.monotonic(), 2)

    assert run(main, 2) == [(1, 1.0), (1, 1.0)]


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.integers(0, 5), min_size=1, max_size=12),
    st.integers(1, 4),
    st.integers(1, 3),
)
def test_every_item_of_a_queue_is_done_once(durations, workers, room):
    """Against arithmetic: no more at a time than there are workers, all of them used."""
    import queue
    import time

    def main():
        items: Any = queue.Queue(room)
        done = []

        def work():
            while True:
                item = items.get()
                if item is None:
                    return
                number, seconds = item
                time.sleep(seconds)
                done.append(number)
                items.task_done()

        threads = [threading.Thread(target=work) for _ in range(workers)]
        for thread in threads:
            thread.start()
        for item in enumerate(durations):
            items.put(item)
        items.join()
        for _ in threads:
            items.put(None)
        for thread in threads:
            thread.join()
        return done, time.monotonic()

    ((done, end),) = run(main)
    assert sorted(done) == list(range(len(durations)))
    total, longest = sum(durations), max(durations)
    assert max(longest, total / workers) - 1e-3 <= end <= total + 1e-3


def test_several_threads_join_one():
    def main():
        import time

        worker = threading.Thread(target=time.sleep, args=(1,))
        worker.start()
        joiners = [threading.Thread(target=worker.join) for _ in range(3)]
        for joiner in joiners:
            joiner.start()
        worker.join()
        for joiner in joiners:
            joiner.join()
        return worker.is_alive()

    assert run(main, 2) == [False, False]


def test_locks_can_be_taken_when_there_are_no_greenlets_any_more(monkeypatch):
    """At the exit of Python, finalizers of handlers of `logging` take the lock of their rank."""

    def gone():
        raise RuntimeError("greenlet is being finalized")

    monkeypatch.setattr(locks, "_is_real", lambda: False)
    lock = locks.RankRLock()
    monkeypatch.setattr(locks, "getcurrent", gone)
    with lock, lock:
        assert lock._is_owned()
    assert not lock._is_owned()
