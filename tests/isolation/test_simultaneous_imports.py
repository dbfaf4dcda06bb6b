"""Imports of shared packages while other ranks import them, too."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest
from ranks_by_hand import run

import pysmpi
from pysmpi.isolation.loading import rules
from pysmpi.isolation.loading.loader import ScriptProgram


def lines(capsys) -> list[str]:
    return capsys.readouterr().out.splitlines()


def test_a_rank_waits_for_a_module_that_another_is_importing(site, write, capsys, monkeypatch):
    monkeypatch.setattr(rules, "KNOWN_SHARED", rules.KNOWN_SHARED | {"slow"})
    site("slow/__init__.py", "import time\ntime.sleep(0.5)\nfrom slow.inner import late\n")
    site("slow/inner.py", "import time\ntime.sleep(0.5)\nlate = object()")
    path = write(
        "program.py",
        """
        from slow import late
        import slow.inner
        assert slow.inner.late is late
        print(id(late))
        """,
    )
    result = pysmpi.run(path, nprocs=3, compute="none")
    assert len(set(lines(capsys))) == 1
    assert 1 <= result.seconds < 1.001


def test_other_ranks_do_not_see_a_module_that_a_rank_is_importing(site, write, capsys, monkeypatch):
    monkeypatch.setattr(rules, "KNOWN_SHARED", rules.KNOWN_SHARED | {"sleepy"})
    site("sleepy/__init__.py", "import sleepy.inner, time\ntime.sleep(0.5)\nlate = object()")
    site("sleepy/inner.py", "early = object()")
    path = write(
        "program.py",
        """
        import sys, time
        from mpi4py import MPI
        time.sleep(0.1 * MPI.COMM_WORLD.rank)
        if MPI.COMM_WORLD.rank:
            assert "sleepy" not in sys.modules
            assert "sleepy.inner" not in sys.modules
        if MPI.COMM_WORLD.rank == 1:
            from sleepy.inner import early
            assert hasattr(sys.modules["sleepy"], "late")
        from sleepy import late
        print(id(late), id(sys.modules["sleepy.inner"]))
        """,
    )
    result = pysmpi.run(path, nprocs=3, compute="none")
    assert len(set(lines(capsys))) == 1
    assert 0.5 <= result.seconds < 0.501


def test_a_rank_imports_what_another_failed_to_import(site, write, capsys, monkeypatch):
    monkeypatch.setattr(rules, "KNOWN_SHARED", rules.KNOWN_SHARED | {"fragile"})
    site(
        "fragile.py",
        """
        import os, time
        time.sleep(0.5)
        if "FAIL" in os.environ:
            raise ImportError("not today")
        """,
    )
    path = write(
        "program.py",
        """
        import os
        from mpi4py import MPI
        if MPI.COMM_WORLD.rank == 0:
            os.environ["FAIL"] = "1"
        try:
            import fragile
            print("imported", fragile.__name__)
        except ImportError as error:
            print(error)
        """,
    )
    pysmpi.run(path, nprocs=3, compute="none")
    assert sorted(lines(capsys)) == ["imported fragile", "imported fragile", "not today"]


def test_ranks_import_modules_that_import_each_other(site, write, capsys, monkeypatch):
    monkeypatch.setattr(rules, "KNOWN_SHARED", rules.KNOWN_SHARED | {"one", "two", "three"})
    for name, other in (("one", "two"), ("two", "three"), ("three", "one")):
        site(
            f"{name}.py",
            f"import time\nearly = 1\ntime.sleep(0.5)\nimport {other}\n"
            f"assert {other}.early\nlate = 1",
        )
    path = write(
        "program.py",
        """
        from mpi4py import MPI
        name = ["one", "two", "three"][MPI.COMM_WORLD.rank]
        assert __import__(name).late
        import one, two, three
        print(one.late + two.late + three.late)
        """,
    )
    result = pysmpi.run(path, nprocs=3, compute="none")
    assert lines(capsys) == ["3", "3", "3"]
    assert result.seconds < 0.501


@pytest.mark.parametrize("shared", [True, False])
def test_a_thread_waits_for_a_module_that_another_is_importing(
    site, write, capsys, monkeypatch, shared
):
    if shared:
        monkeypatch.setattr(rules, "KNOWN_SHARED", rules.KNOWN_SHARED | {"lazybones"})
    site("lazybones.py", "import time\ntime.sleep(0.5)\nlate = 7")
    path = write(
        "program.py",
        """
        from concurrent.futures import ThreadPoolExecutor
        from mpi4py import MPI
        def use(_):
            import lazybones
            return lazybones.late
        with ThreadPoolExecutor(3) as pool:
            print(list(pool.map(use, range(3))))
        """,
    )
    pysmpi.run(path, nprocs=2, compute="none")
    assert lines(capsys) == ["[7, 7, 7]"] * 2


def test_nobody_sees_half_of_a_shared_module(site, write, tmp_path):
    """Modules that start processes and threads while they are loaded let other ranks run."""
    site("slow/__init__.py", "import slow.first\nimport slow.second\nwhole = True")
    site("slow/first.py", "import subprocess, sys\nsubprocess.run([sys.executable, '-c', '0'])")
    site(
        "slow/second.py",
        "import threading\nwarm = threading.Thread(target=int)\nwarm.start()\nwarm.join()",
    )
    path = write(
        "program.py",
        f"""
        import sys
        sys.path.insert(0, {str(tmp_path / "site")!r})
        import warnings
        from mpi4py import MPI
        if MPI.COMM_WORLD.rank % 2:
            from slow import whole
            import slow
        else:
            import slow.second
        assert slow.whole and slow.second.warm
        warnings.filterwarnings("ignore", message="x")
        assert MPI.COMM_WORLD.allreduce(len(warnings.filters)) % len(warnings.filters) == 0
        print("whole", flush=True)
        """,
    )
    for options in ([], ["--shared", "slow"]):
        done = subprocess.run(
            [sys.executable, "-m", "pysmpi", "run", "-n", "4", *options, path],
            capture_output=True, text=True, timeout=120,
        )  # fmt: skip
        assert done.stdout.split() == ["whole"] * 4, done.stderr


def test_nobody_looks_at_what_a_shared_package_imports_lazily(site, write, capsys):
    import _queue

    lazy = """
    import importlib
    class Lazy:
        def __getattribute__(self, name):
            return getattr(importlib.import_module("missing_"), name)
    thing = Lazy()
    """
    target = site("compiled_/__init__.py", lazy)
    shutil.copy(_queue.__file__, target.replace("__init__.py", "_q.so"))
    path = write("program.py", "from mpi4py import MPI\nimport compiled_\nprint('there')")
    pysmpi.run(path, nprocs=2)
    assert lines(capsys) == ["there", "there"]


def test_nobody_goes_on_while_a_shared_module_writes_to_a_pipe(site, write, tmp_path):
    import _queue

    target = site("compiled/__init__.py", "from . import _queue")
    shutil.copy(_queue.__file__, target.replace("__init__.py", "_queue.so"))
    site(
        "compiled/writes.py",
        """
        import os
        for _ in range(3):
            fd = os.open(os.devnull, os.O_WRONLY)
            os.close(fd)
        whole = True
        """,
    )
    path = write(
        "program.py",
        f"""
        import os, sys, threading
        sys.path.insert(0, {str(tmp_path / "site")!r})
        import compiled
        reader, writer = os.pipe()
        waits = threading.Thread(target=os.read, args=(reader, 1))
        waits.start()
        from mpi4py import MPI
        MPI.COMM_WORLD.Barrier()
        for _ in range(2000):
            half = sys.modules.get("compiled.writes")
            assert half is None or half.whole
        import compiled.writes
        os.write(writer, b"x")
        waits.join()
        """,
    )
    result = pysmpi.run(str(path), 4)
    assert result.exit_status == 0


def test_a_shared_module_that_cannot_be_imported_fails_in_every_rank(site, write, capsys):
    import _queue

    target = site("half_broken/__init__.py", "from . import _queue\nfrom . import broken")
    shutil.copy(_queue.__file__, target.replace("__init__.py", "_queue.so"))
    site("half_broken/broken.py", "from . import deeper\nimport there_is_no_such_module")
    site("half_broken/deeper.py", "")
    path = write(
        "program.py",
        """
        from mpi4py import MPI
        import sys
        for _ in range(2):
            try:
                import half_broken
            except ImportError as error:
                inside = [name for name in sys.modules if name.startswith("half_broken.")]
                print(error.name, sorted(inside))
            MPI.give_way()
        """,
    )
    run(ScriptProgram(path), 3)
    left = ["half_broken._queue", "half_broken.deeper"]
    assert lines(capsys) == [f"there_is_no_such_module {left}"] * 6


def test_import_hooks_of_a_shared_package_serve_all_ranks(site, write, capsys, monkeypatch):
    import _queue

    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    target = site(
        "hooked/__init__.py",
        """
        import importlib.machinery, sys, types
        from . import _queue

        class Maker:
            def find_spec(self, name, path, target=None):
                if name.startswith("hooked.made_"):
                    return importlib.machinery.ModuleSpec(name, self)

            def create_module(self, spec):
                return types.ModuleType(spec.name)

            def exec_module(self, module):
                module.value = module.__name__[-1]

        sys.meta_path.append(Maker())
        """,
    )
    shutil.copy(_queue.__file__, target.replace("__init__.py", "_queue.so"))
    path = write(
        "program.py",
        """
        from mpi4py import MPI
        import importlib, os, sys
        before = len(sys.meta_path)
        import hooked
        MPI.give_way()
        made = importlib.import_module("hooked.made_" + os.environ["PMI_RANK"])
        MPI.give_way()
        makers = [finder for finder in sys.meta_path if type(finder).__name__ == "Maker"]
        print(made.value, len(makers), len(sys.meta_path) - before)
        """,
    )
    run(ScriptProgram(path), 3)
    assert sorted(lines(capsys)) == ["0 1 1", "1 1 1", "2 1 1"]
    # The package stays loaded, so a later run needs its hook, too.
    again = write("again.py", "import hooked.made_7\nprint(hooked.made_7.value)")
    run(ScriptProgram(again), 2)
    assert lines(capsys) == ["7", "7"]


def test_what_a_shared_module_warns_of_meets_the_filters_of_the_rank(site, write, capsys):
    import _queue

    target = site("warning/__init__.py", "from . import _queue")
    shutil.copy(_queue.__file__, target.replace("__init__.py", "_queue.so"))
    site("warning/old.py", "import warnings\nwarnings.warn('old', DeprecationWarning)")
    path = write(
        "program.py",
        """
        import importlib, warnings
        from mpi4py import MPI
        found = []
        for _ in range(2):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                import warning.old
                MPI.give_way()
                importlib.reload(warning.old)
            found.append([str(one.message) for one in caught][-1:])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                importlib.reload(warning.old)
            except DeprecationWarning:
                found.append("error")
        print(found)
        """,
    )
    run(ScriptProgram(path), 2)
    assert lines(capsys) == ["[['old'], ['old'], 'error']"] * 2


def test_filters_of_warnings_outlive_imports_inside_imports(site, write, capsys):
    """A shared module imports a private one, which imports another shared one."""
    site("outer_shared.py", "import inner_private\nimport inner_shared")
    site("inner_private.py", "from mpi4py import MPI\nimport inner_shared")
    site("inner_shared.py", "import warnings\nwarnings.filterwarnings('error', message='x')")
    path = write(
        "program.py",
        """
        import warnings
        import outer_shared
        with warnings.catch_warnings(record=True):
            print(sum(one[1] is not None and one[1].pattern == "x" for one in warnings.filters))
        """,
    )
    run(ScriptProgram(path), 3, shared=["outer_shared", "inner_shared"])
    assert lines(capsys) == ["1", "1", "1"]
