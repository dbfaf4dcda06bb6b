"""Each rank has its own state of a process, and programs cannot see the exchange."""

from __future__ import annotations

import os
import subprocess
import sys
import types

import pytest
from ranks_by_hand import run

from pysmpi.isolation.exchange import Exchange, State
from pysmpi.isolation.kinds import contents
from pysmpi.isolation.kinds.settings import Umask
from pysmpi.isolation.loading.loader import ScriptProgram
from pysmpi.isolation.versions import Versions
from pysmpi.patching.lookalike import builtin, like


@pytest.fixture
def output(write, capsys):
    """Run a program in ranks that take turns at `MPI.give_way()`; returns its lines."""

    def output(text: str, size: int = 2) -> list[str]:
        path = write("body.py", text)
        with open(path) as stream:
            path = write("program.py", "from mpi4py import MPI\n" + stream.read())
        run(ScriptProgram(path), size)
        return capsys.readouterr().out.splitlines()

    return output


def test_modules_that_are_imported_in_a_run_are_plain_modules(write, output):
    write("config.py", "import sys\npath = ['mine']\nflags = 1\nstdout = None\n")
    lines = output(
        """
        import sys, types
        import config
        config.argv = "other"
        assert type(config) is type(sys) is types.ModuleType
        assert types.ModuleType("sys").__dict__.keys() == types.ModuleType("x").__dict__.keys()
        print(config.path, config.flags, config.stdout, config.argv, sys.argv is not config.argv)
        """
    )
    assert lines == ["['mine'] 1 None other True"] * 2


@pytest.mark.parametrize(
    "name",
    "time.time time.sleep time.localtime os.getpid os.chdir os.umask builtins.input gc.disable "
    "builtins.open os.open os.listdir "
    "atexit.register sys.setrecursionlimit os._exit".split(),
)
def test_a_replaced_function_is_a_built_in_function_to_everybody(output, name):
    module, _, function = name.rpartition(".")
    text = f"""
    import copy, functools, inspect, pickle, types, {module}
    one = {name}
    class Holder:
        kept = one
    print(type(one) is types.BuiltinFunctionType, Holder().kept is one, one.__name__,
          one.__qualname__, one.__module__, repr(one), pickle.loads(pickle.dumps(one)) is one,
          copy.deepcopy(one) is one, inspect.isbuiltin(one), inspect.isroutine(one),
          one.__text_signature__, bool(one.__doc__), functools.partial(one).func is one)
    """
    code = "import textwrap\nexec(textwrap.dedent('''" + text + "'''))"
    plain = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=100
    )
    assert output(text, 1) == plain.stdout.splitlines()


def test_a_built_in_function_passes_arguments_and_exceptions():
    def replacement(*args, **kwargs):
        if not args:
            raise LookupError("nothing")
        return args, kwargs

    one = builtin(os.chdir, replacement)
    assert one(1, two=2) == ((1,), {"two": 2})
    with pytest.raises(LookupError, match="nothing"):
        one()
    python = like(subprocess.run, replacement)
    assert python.__name__ == "run" and python.__wrapped__ is subprocess.run


def test_a_formatter_of_logging_formats_the_date(output):
    lines = output(
        """
        import io, logging
        stream = io.StringIO()
        form = "%(asctime)s %(message)s"
        logging.basicConfig(force=True, stream=stream, format=form, datefmt="%Y")
        MPI.give_way()
        logging.warning("hello %d", MPI.rank())
        print(stream.getvalue().strip())
        """
    )
    assert lines == ["2000 hello 0", "2000 hello 1"]


def test_a_module_that_a_hook_of_the_program_makes_is_a_ranks_own(output):
    lines = output(
        """
        import importlib.abc, importlib.util, sys
        from mpi4py import MPI
        rank = MPI.rank()
        class Hook(importlib.abc.MetaPathFinder, importlib.abc.Loader):
            def find_spec(self, name, path=None, target=None):
                if name in ("made_up", "made_up.inner"):
                    return importlib.util.spec_from_loader(name, self, is_package="." not in name)
            def create_module(self, spec):
                return None
            def exec_module(self, module):
                module.value = f"of rank {rank}"
        sys.meta_path.insert(0, Hook())
        MPI.give_way()
        import made_up.inner
        MPI.give_way()
        sys.stdout.write(f"{made_up.value} {made_up.inner.value}" + chr(10))
        """
    )
    assert lines == ["of rank 0 of rank 0", "of rank 1 of rank 1"]


def test_streams_paths_and_hooks_are_a_ranks_own(output):
    lines = output(
        """
        import builtins, contextlib, io, sys
        from mpi4py import MPI
        rank = MPI.rank()
        class Finder:
            def find_spec(self, name, path=None, target=None):
                for finder in sys.meta_path:
                    if finder is not self and hasattr(finder, "find_spec"):
                        spec = finder.find_spec(name, path, target)
                        if spec is not None:
                            return spec
        sys.meta_path.insert(0, Finder())
        sys.path.append(f"mine {rank}")
        sys.path_hooks.insert(0, rank)
        sys.path_hooks.remove(rank)
        sys.excepthook = rank
        builtins.mine = rank
        if rank == 0:
            builtins.print = None
        captured = io.StringIO()
        with contextlib.redirect_stdout(captured):
            MPI.give_way()
            sys.stdout.write(f"captured {rank}")
            MPI.give_way()
        import wave, colorsys
        assert sum(type(finder) is Finder for finder in sys.meta_path) == 1
        assert builtins.mine == sys.excepthook == rank and (print is None) == (rank == 0)
        sys.stdout.write(f"{captured.getvalue()} {sys.path[-1]} {mine}" + chr(10))
        MPI.give_way()
        sys.excepthook = sys.__excepthook__
        """,
        3,
    )
    assert lines == [f"captured {rank} mine {rank} {rank}" for rank in range(3)]


def test_the_umask_stays_as_it_is_when_it_is_read():
    before = os.umask(0o27)
    try:
        assert Umask(Exchange({}, {}, Versions)).capture() == 0o27
        assert os.umask(0o27) == 0o27
    finally:
        os.umask(before)


def test_nothing_of_it_remains_after_a_run(output):
    import builtins
    import gc
    import warnings

    def state():
        return (
            list(sys.path), list(sys.meta_path), list(sys.path_hooks), sys.stdout, sys.excepthook,
            list(warnings.filters), builtins.print, hasattr(builtins, "mine"), os.getcwd(),
            sys.getrecursionlimit(), gc.isenabled(), type(sys), sys.setrecursionlimit,
        )  # fmt: skip

    before = state()
    lines = output(
        """
        import builtins, gc, os, sys, warnings
        rank = MPI.rank()
        sys.path.append("x"); sys.meta_path.append("y"); sys.excepthook = 1; builtins.mine = 1
        os.chdir("/"); sys.setrecursionlimit(2000 + rank); gc.disable() if rank else None
        os.umask(0o70 + rank); warnings.simplefilter("error")
        MPI.give_way()
        print(sys.getrecursionlimit() - rank, gc.isenabled() == (not rank), os.getcwd(),
              os.umask(0) - rank == 0o70)
        sys.excepthook = sys.__excepthook__
        """
    )
    assert lines == ["2000 True / True"] * 2
    assert state() == before


def test_warnings_are_shown_once_a_rank_whatever_others_do(output):
    lines = output(
        """
        import sys, warnings
        rank = MPI.rank()
        warnings.showwarning = lambda message, category, *place: print(category.__name__, message)
        warnings.simplefilter("default")
        for _ in range(20):
            warnings.warn(f"of rank {rank}")
            MPI.give_way()
            if rank == 1:
                warnings.filterwarnings("ignore", "other")
        """,
        3,
    )
    shown = [line for line in lines if "UserWarning" in line]
    assert sum("rank 0" in line for line in shown) == 1
    assert sum("rank 2" in line for line in shown) == 1
    assert sum("rank 1" in line for line in shown) == 20  # changed filters forget, as usual


def test_exit_functions_of_libraries_run_in_their_rank(site, write, capsys):
    site("library.py", "import atexit\ndef later(*args):\n    atexit.register(print, *args)\n")
    path = write(
        "program.py",
        """
        from mpi4py import MPI
        import library
        library.later("end", MPI.rank())
        print("begin", MPI.rank())
        """,
    )
    run(ScriptProgram(path), 2)
    assert capsys.readouterr().out.splitlines() == ["begin 0", "end 0", "begin 1", "end 1"]


def test_loggers_of_shared_packages_are_configured_in_every_rank(site, write, capsys):
    site(
        "talkative.py",
        """
        import logging, sys
        logger = logging.getLogger("talkative")
        class Handler(logging.Handler):
            def emit(self, record):
                print("handled", record.getMessage())
        logger.addHandler(Handler())
        logger.setLevel(logging.INFO)
        """,
    )
    path = write(
        "program.py",
        """
        from mpi4py import MPI
        import logging
        if MPI.rank() == 1:
            logging.getLogger("talkative").disabled
        MPI.give_way()
        import talkative
        if MPI.rank() == 2:
            logging.disable(logging.CRITICAL)
        MPI.give_way()
        talkative.logger.info(f"by {MPI.rank()}")
        """,
    )
    run(ScriptProgram(path), 3)
    assert capsys.readouterr().out.splitlines() == ["handled by 0", "handled by 1"]


@pytest.mark.parametrize(
    "text",
    [
        "def world():\n    from mpi4py import MPI\n    return MPI\n",
        "def of(communicator):\n    return communicator.Get_rank()\n",
        "import importlib\ndef world():\n    return importlib.import_module('mpi4py.MPI')\n",
    ],
)
def test_packages_that_know_mpi_in_functions_only_are_private(site, write, capsys, text):
    site("late/__init__.py", "state = []\n")
    site("late/inner.py", text)
    site("above.py", "try:\n    import late\nexcept ImportError:\n    pass\nstate = []\n")
    site("aside.py", "def function():\n    import late\nstate = []\n")
    path = write(
        "program.py",
        """
        from mpi4py import MPI
        import above, aside, late
        for module in (above, aside, late):
            module.state.append(1)
        MPI.give_way()
        print(len(above.state), len(aside.state), len(late.state), above.late is late)
        """,
    )
    run(ScriptProgram(path), 2)
    assert capsys.readouterr().out.splitlines() == ["1 1 1 True"] * 2


def test_numpy_is_shared_wherever_it_lies(tmp_path, write):
    import numpy

    place = tmp_path / "elsewhere"
    place.mkdir()
    root = os.path.dirname(os.path.dirname(numpy.__file__))
    for name in ("numpy", "numpy.libs"):
        if os.path.exists(os.path.join(root, name)):
            os.symlink(os.path.join(root, name), place / name)
    path = write("program.py", "from mpi4py import MPI\nimport numpy\nprint(numpy.__file__)\n")
    code = f"""
import sys
sys.path.insert(0, {str(place)!r})
sys.path.insert(0, {os.path.dirname(os.path.dirname(__file__))!r})
from ranks_by_hand import run
from pysmpi.isolation.kinds.settings import Umask
from pysmpi.isolation.loading.loader import ScriptProgram
run(ScriptProgram({path!r}), 2)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=100
    )
    assert done.stdout.count(str(place)) == 2


def test_options_and_registries_of_shared_packages_are_a_ranks_own(output):
    lines = output(
        """
        import matplotlib
        matplotlib.use("Agg")
        import matplotlib.pyplot as plt
        from matplotlib.colors import ListedColormap
        rank = MPI.rank()
        plt.rcParams["lines.linewidth"] = rank + 1
        matplotlib.colormaps.register(ListedColormap(["r", "g"]), name="mine")
        plt.subplots()[1].plot([1, 2, rank])
        MPI.give_way()
        print(len(plt.get_fignums()), plt.rcParams["lines.linewidth"],
              plt.gca().lines[0].get_ydata()[2], "viridis" in matplotlib.colormaps)
        plt.close("all")
        MPI.give_way()
        print(plt.get_fignums())
        """,
        3,
    )
    assert lines[:3] == [f"1 {rank + 1}.0 {rank} True" for rank in range(3)]
    assert lines[3:] == ["[]"] * 3
    import matplotlib

    assert "mine" not in matplotlib.colormaps


def test_contents_that_a_shared_import_adds_are_for_all_ranks():
    registry = {"one": 1}
    module = types.ModuleType("fsspec.registry")
    module._registry = registry
    exchange = Exchange({module.__name__: module}, {})
    imports = types.SimpleNamespace(begin_shared=[], end_shared=[])
    contents.watch(exchange, imports, module, ["_registry"])
    first, second = State(0), State(1)
    exchange.show(first)
    registry["mine"] = 0
    exchange.show(second)
    assert registry == {"one": 1}
    for begin in imports.begin_shared:
        begin()
    registry["new"] = 2
    for end in imports.end_shared:
        end()
    exchange.show(first)
    assert registry == {"one": 1, "mine": 0, "new": 2}
    exchange.close()
    assert registry == {"one": 1, "new": 2}
