"""Objects with a `__del__` that calls MPI: at the end of their rank, in cycles, and after it."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

START = """
from mpi4py import MPI

comm = MPI.COMM_WORLD

class Thing:
    def __init__(self, name):
        self.name = name
        self.comm = comm.Dup()
    def __del__(self):
        finish(self)
"""


def run(text: str, ranks: int = 2, start: str = START) -> subprocess.CompletedProcess[str]:
    program = start + textwrap.dedent(text)
    done = subprocess.run(
        [sys.executable, "-m", "pysmpi", "run", "-q", "-n", str(ranks), "--compute", "none",
         "-c", program],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "pysmpi/cli" not in done.stderr, done.stderr  # it has not crashed
    return done


def test_objects_of_modules_go_while_mpi_can_be_used():
    done = run("""
        def finish(thing):
            assert not MPI.Is_finalized()
            total = thing.comm.allreduce(comm.rank + 1)
            thing.comm.Free()
            print(thing.name, comm.rank, total)
        things = [Thing("in a list")]
        pair = {"one": things[0]}
        alone = Thing("alone")
    """)
    assert done.stderr == ""
    assert sorted(done.stdout.splitlines()) == [
        "alone 0 3", "alone 1 3", "in a list 0 3", "in a list 1 3"
    ]  # fmt: skip


def test_so_do_local_objects_of_a_program_that_exits():
    done = run("""
        import sys
        def finish(thing):
            thing.comm.Barrier()
            print(thing.name, comm.rank)
        def main():
            thing = Thing("local")
            sys.exit()
        main()
    """)
    assert done.stderr == ""
    assert sorted(done.stdout.splitlines()) == ["local 0", "local 1"]


def test_objects_in_cycles_ask_and_free():
    done = run("""
        def finish(thing):
            thing.comm.Free()
            print(thing.name, comm.rank)
        thing = Thing("cycle")
        thing.me = thing
    """)
    assert done.stderr == ""
    assert sorted(done.stdout.splitlines()) == ["cycle 0", "cycle 1"]


def test_objects_in_cycles_wait_in_their_rank():
    done = run("""
        import gc, time
        def finish(thing):
            thing.wait()
            print(thing.name, comm.rank)
        for name, wait in ("barrier", comm.Barrier), ("sleep", lambda: time.sleep(1)):
            thing = Thing(name)
            thing.wait = wait
            thing.me = thing
            del thing
            gc.collect()
        before = MPI.Wtime()
        comm.Barrier()
        print("end", comm.rank, MPI.Wtime() >= 1)
    """)
    assert done.stderr == ""
    for rank in range(2):
        lines = [line for line in done.stdout.splitlines() if line.split()[1] == str(rank)]
        assert lines == [f"barrier {rank}", f"sleep {rank}", f"end {rank} True"]


def test_a_search_in_one_rank_leaves_the_objects_of_others_to_them():
    done = run("""
        import gc, time
        def finish(thing):
            time.sleep(1)
            print(thing.name, comm.rank, MPI.Wtime() >= 1)
            raise ValueError("wrong")
        thing = Thing("cycle")
        thing.me = thing
        del thing
        if comm.rank == 1:
            comm.recv(source=0)
            gc.collect()
            print("collected")
            comm.send(None, 0)
        else:
            comm.send(None, 1)
            comm.recv(source=1)
            print("received")
        comm.Barrier()
        print("end", comm.rank)
    """)
    lines = done.stdout.splitlines()
    assert lines[:4] == ["cycle 1 True", "collected", "received", "cycle 0 True"]
    assert sorted(lines[4:]) == ["end 0", "end 1"]
    assert done.stderr.count("Exception ignored in: <function Thing.__del__") == 2
    assert done.stderr.count("ValueError: wrong") == 2
    assert "finalizers.py" not in done.stderr


def test_methods_are_called_once_wherever_the_object_is():
    done = run("""
        def finish(thing):
            thing.comm.Barrier()
            print(thing.name, comm.rank)
        class Holder:
            pass
        holder = Holder()
        holder.inner = Holder()
        holder.inner.table = {"key": [Thing("nested")]}
        Holder.shared = Thing("of the class")
        def function(default=[Thing("default")]):
            return default
        def closure():
            thing = Thing("closure")
            return lambda: thing
        closed = closure()
        def local():
            class Local:
                def __del__(self):
                    print("of a local class", comm.rank)
            thing = Local()
            thing.me = thing
        local()
        alone = Thing("alone")
    """)
    assert done.stderr == ""
    names = ["alone", "closure", "default", "nested", "of a local class", "of the class"]
    for rank in range(2):
        found = [line.rpartition(" ")[0] for line in done.stdout.splitlines()
                 if line.endswith(f" {rank}")]  # fmt: skip
        assert sorted(found) == names


def test_generators_in_cycles_cannot_wait():
    done = run("""
        import gc
        def generate():
            me = yield
            try:
                yield
            finally:
                comm.Barrier()
        generator = generate()
        next(generator)
        generator.send(generator)
        del generator
        gc.collect()
        comm.Barrier()
    """)
    assert done.stderr.count("RuntimeError: Python's garbage collector cannot wait") == 2


def test_what_outlives_its_rank_is_told_so():
    done = run("""
        def finish(thing):
            print(thing.name, MPI.Is_finalized(), comm.rank)
            if thing.name == "recv":
                comm.recv()
            else:
                comm.Barrier()
        for name in "recv", "barrier":
            comm.Set_attr(MPI.Comm.Create_keyval(), Thing(name))
    """)
    assert sorted(done.stdout.splitlines()) == [
        "barrier True 0", "barrier True 1", "recv True 0", "recv True 1"
    ]  # fmt: skip
    for rank in range(2):
        assert done.stderr.count(f"RuntimeError: rank {rank} has ended: an object") == 2


FINALIZERS = """
    import atexit, os, sys, weakref
    class Kept:
        pass
    kept = Kept()
    def say(name):
        comm.Barrier()
        assert not MPI.Is_finalized()
        sys.stdout.write(f"{name} {comm.rank} {os.getpid() == me}\\n")
    me = os.getpid()
"""


def lines_of(done: subprocess.CompletedProcess[str], rank: int) -> list[str]:
    return [line.split()[0] for line in done.stdout.splitlines() if line.endswith(f"{rank} True")]


def test_finalizers_run_at_the_end_of_their_rank_the_latest_first():
    done = run(
        FINALIZERS
        + """
    atexit.register(say, "registered-first")
    weakref.finalize(kept, say, "first")
    weakref.finalize(kept, say, "second")
    weakref.finalize(kept, say, "never").atexit = False
    atexit.register(say, "registered-last")
    weakref.finalize(kept, say, "third")
    """
    )
    assert done.stderr == ""
    assert lines_of(done, 0) == lines_of(done, 1) == [
        "registered-last", "third", "second", "first", "registered-first"
    ]  # fmt: skip


def test_compiled_code_of_a_cache_of_all_ranks_outlives_the_rank_that_made_it(tmp_path: Path):
    # numba keeps functions that it has compiled for its own use. At the end of a process their
    # finalizers do nothing; at the end of a rank, other ranks still call the functions.
    package = tmp_path / "numba"
    package.mkdir()
    (package / "__init__.py").write_text(
        textwrap.dedent("""
        import weakref
        compiled, cache = {}, {}
        class Function:
            def __init__(self, name):
                compiled[name] = name.upper()
                weakref.finalize(self, compiled.pop, name)
        def call(name):
            if name not in cache:
                cache[name] = Function(name)
            return compiled[name]
        def own(name):
            return Function(name)
        """)
    )
    done = run(
        f"""
        import sys
        sys.path.insert(0, {str(tmp_path)!r})
        import numba
        print(comm.rank, numba.call("empty"), sorted(numba.compiled))
        mine = numba.own(f"mine of {{comm.rank}}")
        """,
        ranks=3,
        start="from mpi4py import MPI\ncomm = MPI.COMM_WORLD\n",
    )
    # A function of a rank's own goes with its rank.
    assert done.stdout.splitlines() == [f"{rank} EMPTY ['empty']" for rank in range(3)]
    assert done.stderr == ""


def test_a_finalizer_that_fails_keeps_no_other_from_running():
    done = run(
        FINALIZERS
        + """
    def fail():
        weakref.finalize(kept, say, "late")
        raise ValueError("wrong")
    weakref.finalize(kept, say, "first")
    weakref.finalize(kept, fail)
    sys.exit()
    """
    )
    assert done.stderr.count("ValueError: wrong") == 2
    assert lines_of(done, 0) == lines_of(done, 1) == ["late", "first"]


def test_finalizers_of_the_caller_stay_its_own(tmp_path: Path):
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent("""
        import weakref
        import pysmpi
        class Kept: pass
        kept = Kept()
        def rank():
            from mpi4py import MPI
            weakref.finalize(kept, print, "of rank", MPI.COMM_WORLD.rank)
            MPI.COMM_WORLD.Barrier()
        if __name__ == "__main__":
            weakref.finalize(kept, print, "of the caller")
            pysmpi.run(rank, 2, compute="none")
            print("run")
    """)
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=120)
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert sorted(lines[:2]) == ["of rank 0", "of rank 1"]
    assert lines[2:] == ["run", "of the caller"]


def test_open_generators_are_closed_in_their_rank():
    done = run(
        FINALIZERS
        + """
    import contextlib
    del Kept, kept
    def generate(name):
        try:
            yield
        finally:
            say(name)
    def opened(name):
        generator = generate(name)
        next(generator)
        return generator
    alone = opened("alone")
    listed = [opened("listed")]
    managed = contextlib.contextmanager(generate)("managed")
    managed.__enter__()
    fresh = generate("fresh")
    """,
        start="from mpi4py import MPI; comm = MPI.COMM_WORLD",
    )
    assert done.stderr == ""
    assert sorted(lines_of(done, 0)) == sorted(lines_of(done, 1)) == ["alone", "listed", "managed"]


def test_classes_of_the_caller_keep_their_finalizers_after_an_abort(tmp_path):
    script = tmp_path / "caller.py"
    script.write_text(
        textwrap.dedent(
            """
            import pysmpi

            class Kept:
                def __del__(self):
                    print("gone", flush=True)

            def abort():
                from mpi4py import MPI
                if MPI.COMM_WORLD.rank == 0:
                    MPI.COMM_WORLD.Abort(3)
                MPI.COMM_WORLD.Barrier()

            for ranks in 1, 3:
                print(pysmpi.run(abort, ranks, check=False, compute="none").exit_status)
                Kept()
            """
        )
    )
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=100
    )
    assert done.stdout.split() == ["3", "gone", "3", "gone"], done.stderr


def test_so_do_objects_of_classes_of_a_module_of_the_program(tmp_path: Path):
    (tmp_path / "things.py").write_text(
        "from mpi4py import MPI\n"
        "class Counted:\n"
        "    def __del__(self):\n"
        "        print(MPI.COMM_WORLD.allreduce(1), MPI.Is_finalized())\n"
    )
    (tmp_path / "program.py").write_text(
        "import things\nfrom things import Counted\nkept = {'one': things.Counted()}\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "pysmpi", "run", "-q", "-n", "2", "program.py"],
        cwd=tmp_path, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("2 False\n" * 2, "")
