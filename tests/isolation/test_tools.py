"""Debuggers, profilers, coverage and crash reports in ranks."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import textwrap
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pysmpi.isolation.kinds import thread_hooks, tools
from pysmpi.mpi.base.ranks import Fiber

# What docs/reference/debugging.md says of Python 3.12 and later.
TOOLS = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
if hasattr(sys, "monitoring"):
    TOOLS["COVERAGE_CORE"] = "sysmon"

try:
    from pysmpi.isolation.kinds import trace_hooks
except ImportError:
    trace_hooks = None

START = "import sys, threading\nfrom mpi4py import MPI\ncomm = MPI.COMM_WORLD\n"


def run(
    text: str, cwd: Path, *before: str, ranks: int = 3, typed: str = "", after: tuple[str, ...] = ()
) -> subprocess.CompletedProcess[str]:
    (cwd / "prog.py").write_text(START + textwrap.dedent(text))
    return subprocess.run(
        [sys.executable, *before, "-m", "pysmpi", "run", "-q", "-n", str(ranks),
         "--compute", "none", *after, "prog.py"],
        capture_output=True, text=True, timeout=100, cwd=cwd, input=typed,
        env=TOOLS,
    )  # fmt: skip


def test_the_debugger_of_any_rank_has_the_terminal(tmp_path: Path) -> None:
    done = run(
        """
        x = comm.rank * 10
        comm.Barrier()
        if comm.rank == 2:
            breakpoint()
        comm.Barrier()
        x += 1
        comm.Barrier()
        assert sys.stdin.read() == ""
        print("end", comm.rank, x)
        """,
        tmp_path,
        # From Python 3.13 on it stops in the line of `breakpoint()`.
        typed=("n\n" if sys.version_info >= (3, 13) else "") + "p x\nn\nn\np x + 1000\nc\n",
    )
    assert done.stderr == ""
    assert "(Pdb, rank 2) 20\n" in done.stdout
    assert "-> x += 1\n" in done.stdout  # a step over a call in which other ranks run
    assert "(Pdb, rank 2) 1021\n" in done.stdout
    assert done.stdout.endswith("end 0 1\nend 1 11\nend 2 21\n")


PROFILED = """
import cProfile, pstats
def own():
    pass
def of_others():
    pass
profiles = comm.rank in (1, 2)
if profiles:
    profile = cProfile.Profile()
    profile.enable()
for i in range(20):
    own() if profiles else of_others()
    comm.Barrier()
if profiles:
    profile.disable()
    found = {key[2]: value[0] for key, value in pstats.Stats(profile).stats.items()}
    print(comm.rank, found.get("own"), found.get("of_others"))
"""
# The profiler is loaded before the run.
LOADED = "import cProfile, pysmpi; pysmpi.run('prog.py', 3, compute='none')"


@pytest.mark.skipif(
    not hasattr(sys, "monitoring") and trace_hooks is None,
    reason="Python 3.11 needs pysmpi's parts in C",
)
@pytest.mark.parametrize("loaded", [False, True])
def test_a_profile_counts_its_rank_only(tmp_path: Path, loaded: bool) -> None:
    if loaded:
        (tmp_path / "prog.py").write_text(START + PROFILED)
        done = subprocess.run(
            [sys.executable, "-c", LOADED],
            capture_output=True, text=True, timeout=100, cwd=tmp_path, env=TOOLS,
        )  # fmt: skip
    else:
        done = run(PROFILED, tmp_path)
    assert done.stderr == ""
    assert sorted(done.stdout.splitlines()) == ["1 20 None", "2 20 None"]


@pytest.mark.skipif(not hasattr(sys, "monitoring"), reason="needs Python 3.12")
def test_each_rank_has_its_own_tools_of_monitoring(tmp_path: Path) -> None:
    done = run(
        """
        monitoring = sys.monitoring
        found = []
        def own():
            pass
        def others():
            pass
        if comm.rank < 2:
            monitoring.use_tool_id(3, f"tool of {comm.rank}")
            monitoring.set_events(3, monitoring.events.PY_START)
            monitoring.register_callback(
                3, monitoring.events.PY_START,
                lambda code, offset: found.append((code.co_name, comm.rank)),
            )
        names = []
        for i in range(4):
            own() if comm.rank < 2 else others()
            names.append(monitoring.get_tool(3))
            comm.Barrier()
            if (comm.rank, i) == (0, 1):
                monitoring.free_tool_id(3)
        assert names == {
            0: ["tool of 0"] * 2 + [None] * 2, 1: ["tool of 1"] * 4, 2: [None] * 4
        }[comm.rank], names
        if comm.rank == 1:
            try:
                monitoring.use_tool_id(3, "again")
            except ValueError as error:
                print(error)
        mine = [rank for name, rank in found if name == "own"]
        assert "others" not in [name for name, rank in found]
        print(comm.rank, mine)
        """,
        tmp_path,
    )
    assert done.stderr == ""
    assert sorted(done.stdout.splitlines()) == [
        "0 [0, 0]", "1 [1, 1, 1, 1]", "2 []", "tool 3 is already in use"
    ]  # fmt: skip


@pytest.mark.skipif(
    not hasattr(sys, "monitoring") and trace_hooks is None,
    reason="Python 3.11 needs pysmpi's parts in C",
)
def test_a_profile_around_the_program_of_each_rank(tmp_path: Path) -> None:
    done = run(
        """
        def own():
            comm.Barrier()
        for i in range(4 + comm.rank):
            own()
            comm.Barrier()
        for i in range(2 - comm.rank):
            comm.Barrier()
            comm.Barrier()
        """,
        tmp_path,
        after=("-m", "cProfile"),
    )
    assert done.stderr == ""
    lines = [line.split() for line in done.stdout.splitlines() if "(own)" in line]
    assert sorted(int(words[0]) for words in lines) == [4, 5, 6]


def test_a_tracing_function_follows_its_rank_and_thread(tmp_path: Path) -> None:
    done = run(
        """
        lines = []
        def trace(frame, event, argument):
            if frame.f_code.co_filename.endswith("prog.py"):
                lines.append((frame.f_code.co_name, event, comm.rank))
            return trace
        def traced():
            comm.Barrier()
            comm.Barrier()
        def others():
            comm.Barrier()
            comm.Barrier()
        def in_thread():
            pass
        if comm.rank == 1:
            sys.settrace(trace)
        (traced if comm.rank == 1 else others)()
        assert (sys.gettrace() is trace) == (comm.rank == 1)
        thread = threading.Thread(target=in_thread)
        thread.start()
        thread.join()
        sys.settrace(None)
        comm.Barrier()
        assert sys.gettrace() is None
        print(comm.rank, [event for name, event, rank in lines if name == "traced"],
              {name for name, event, rank in lines})
        """,
        tmp_path,
    )
    assert done.stderr == ""
    assert sorted(done.stdout.splitlines()) == [
        "0 [] set()", "1 ['call', 'line', 'line', 'return'] {'traced'}", "2 [] set()"
    ]  # fmt: skip


COVERED = """
def work():
    comm.Barrier()
    if comm.rank == 1:
        a = 1
    comm.Barrier()
    if comm.rank == 2:
        b = 2
def in_thread():
    comm.allreduce(1)
    x = 3
def never():
    return 1
for i in range(3):
    work()
thread = threading.Thread(target=in_thread)
thread.start()
thread.join()
"""


@pytest.mark.parametrize("inside", [False, True], ids=["around the run", "in each rank"])
def test_coverage_sees_all_ranks_to_their_end(tmp_path: Path, inside: bool) -> None:
    coverage = pytest.importorskip("coverage", reason="coverage is not installed")
    words = ("-m", "coverage", "run", "--include=prog.py", "-p")
    if inside:
        done = run(COVERED, tmp_path, after=words)
    else:
        done = run(COVERED, tmp_path, *words)
    assert done.stderr == ""
    measured = coverage.Coverage(data_file=str(tmp_path / ".coverage"))
    measured.combine([str(tmp_path)])
    _, _, missing, _ = measured.analysis(str(tmp_path / "prog.py"))
    never = (START + COVERED).splitlines().index("    return 1") + 1
    assert missing == [never]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="an address that crashes")
def test_a_crash_says_rank_and_line(tmp_path: Path) -> None:
    done = run(
        """
        import ctypes, faulthandler
        assert not faulthandler.is_enabled()
        def crash():
            ctypes.string_at(0)
        comm.Barrier()
        if comm.rank == 2:
            crash()
        comm.Barrier()
        """,
        tmp_path,
    )
    assert done.returncode == -11
    assert "Fatal Python error: Segmentation fault" in done.stderr
    assert 'prog.py", line 8 in crash' in done.stderr
    assert "in rank 2\n" in done.stderr


@pytest.mark.parametrize(
    "pid, names",
    [
        (7, ["rank 7"]),
        (999, ["rank 999"]),
        (1000, ["rank 1000", "+ 0"]),
        (12345, ["rank 12000", "+ 345"]),
        (13345, ["rank 13000", "+ 345"]),
    ],
)
def test_frames_name_any_rank(pid: int, names: list[str]) -> None:
    def body() -> list[str]:
        found = traceback.extract_stack()
        return [frame.name for frame in found[:-1] if frame.filename == tools.__file__]

    named = tools.Named(body)
    for other in (12345, 12000, 345, 1345):
        named.of(other)
    fiber = Fiber(named.of(pid))
    fiber.rank = SimpleNamespace(pid=pid)  # type: ignore[assignment]
    assert fiber.switch() == names


def test_the_crash_handler_is_on_for_the_rank_that_switched_it_on(tmp_path: Path) -> None:
    done = run(
        """
        import faulthandler
        if comm.rank == 1:
            faulthandler.enable()
        comm.Barrier()
        print(comm.rank, faulthandler.is_enabled(), faulthandler.disable(),
              faulthandler.is_enabled())
        """,
        tmp_path,
    )
    assert sorted(done.stdout.splitlines()) == [
        "0 False False False", "1 True True False", "2 False False False"
    ]  # fmt: skip


class Client:
    """An editor that debugs: the necessary part of the Debug Adapter Protocol."""

    def __init__(self, port: int) -> None:
        for _ in range(300):
            try:
                self.socket = socket.create_connection(("127.0.0.1", port))
                break
            except OSError:
                time.sleep(0.1)
        self.socket.settimeout(60)
        self.stream = self.socket.makefile("rwb")
        self.sent = 0

    def send(self, command: str, **arguments: Any) -> int:
        self.sent += 1
        request = {
            "seq": self.sent, "type": "request", "command": command, "arguments": arguments
        }  # fmt: skip
        body = json.dumps(request).encode()
        self.stream.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self.stream.flush()
        return self.sent

    def until(self, wanted: Callable[[Any], bool]) -> Any:
        while True:
            length = 0
            while line := self.stream.readline().strip():
                if line.lower().startswith(b"content-length"):
                    length = int(line.split(b":")[1])
            message = json.loads(self.stream.read(length))
            if wanted(message):
                return message.get("body")

    def event(self, name: str) -> Any:
        return self.until(lambda message: message.get("event") == name)

    def ask(self, command: str, **arguments: Any) -> Any:
        number = self.send(command, **arguments)
        return self.until(lambda message: message.get("request_seq") == number)


def _of_another_rank(client: Client, name: str) -> tuple[list[str], list[int], str, str]:
    """The stack of a rank that waits while another one has stopped, and values in it."""
    (thread,) = (one["id"] for one in client.ask("threads")["threads"] if one["name"] == name)
    frames = client.ask("stackTrace", threadId=thread)["stackFrames"]
    answers = [
        client.ask("evaluate", expression=text, frameId=frames[0]["id"], context="watch")["result"]
        for text in ("y * 100 + x", "comm.rank, comm.size")
    ]
    # An installed pysmpi is a library, whose frames the debugger hides.
    return [one["name"] for one in frames[:2]], [one["line"] for one in frames[:2]], *answers


@pytest.mark.skipif(
    sys.version_info >= (3, 13),
    reason="debugpy stops in one rank with Python 3.13: docs/reference/debugging.md",
)
@pytest.mark.skipif(trace_hooks is None, reason="needs pysmpi's parts in C")
def test_debugpy_stops_and_evaluates_in_every_rank(tmp_path: Path) -> None:
    pytest.importorskip("debugpy", reason="debugpy is not installed")
    program = tmp_path / "prog.py"
    program.write_text(
        START
        + "assert threading.main_thread().ident is not None\n"
        + "def work(x):\n    y = x + 1\n    comm.Barrier()\n    return y\n"
        + "work(comm.rank)\n"
        + "print('end', comm.rank)\n"
    )
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    output = tmp_path / "output"
    with open(output, "w") as stream:
        process = subprocess.Popen(
            [sys.executable, "-Xfrozen_modules=off", "-m", "debugpy", "--listen", str(port),
             "--wait-for-client", "-m", "pysmpi", "run", "-q", "-n", "3", str(program)],
            stdout=stream, stderr=subprocess.STDOUT,
            env=TOOLS,
        )  # fmt: skip
    try:
        client = Client(port)
        client.send("initialize", adapterID="test", pathFormat="path")
        client.send("attach", justMyCode=True)
        client.event("initialized")
        client.ask("setBreakpoints", source={"path": str(program)}, breakpoints=[{"line": 6}])
        client.send("configurationDone")
        seen = []
        threads = []
        for _ in range(3):
            thread = client.event("stopped")["threadId"]
            threads.append(sorted(one["name"] for one in client.ask("threads")["threads"]))
            if len(seen) == 2:
                waiting = _of_another_rank(client, "rank 1")
            frame = client.ask("stackTrace", threadId=thread)["stackFrames"][0]
            answer = client.ask(
                "evaluate", expression="comm.rank * 100 + x", frameId=frame["id"], context="watch"
            )
            client.ask("next", threadId=thread)
            thread = client.event("stopped")["threadId"]
            after = client.ask("stackTrace", threadId=thread)["stackFrames"][0]
            seen.append((answer["result"], frame["line"], after["line"]))
            client.send("continue", threadId=thread)
        client.event("terminated")
        assert process.wait(60) == 0
    finally:
        process.kill()
    assert seen == [("0", 6, 7), ("101", 6, 7), ("202", 6, 7)]
    assert [names for names in threads if "rank 0" in names]
    assert threads[2] == ["rank 0", "rank 1", "rank 2"]
    assert waiting == (["work", "<module>"], [7, 9], "201", "(1, 3)")
    assert output.read_text() == "end 0\nend 1\nend 2\n"


def test_each_rank_measures_its_own_coverage(tmp_path: Path) -> None:
    pytest.importorskip("coverage", reason="coverage is not installed")
    program = tmp_path / "prog.py"
    program.write_text(
        "import coverage\n"
        "from mpi4py import MPI\n"
        "rank = MPI.COMM_WORLD.rank\n"
        "open(f'work{rank}.py', 'w').write(f'def f(c):\\n  c.barrier()\\n  return {rank}\\n')\n"
        "measured = coverage.Coverage(data_file=None, include=['work*.py'])\n"
        "measured.start()\n"
        "module = __import__(f'work{rank}')\n"
        "if rank: module.f(MPI.COMM_WORLD)\n"
        "else: MPI.COMM_WORLD.barrier()\n"
        "measured.stop()\n"
        "print(rank, measured.analysis2(f'work{rank}.py')[3])\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "pysmpi", "run", "-q", "-n", "2", str(program)],
        capture_output=True, text=True, cwd=tmp_path, timeout=100,
    )  # fmt: skip
    assert sorted(done.stdout.splitlines()) == ["0 [2, 3]", "1 []"], done.stderr


def test_hooks_are_read_and_set_with_and_without_the_extension() -> None:
    """A switch to a fiber puts back what was read at the switch from it."""

    def trace(frame: object, event: str, argument: object) -> None:
        return None

    ways = [
        (thread_hooks._read_python, thread_hooks._put_python),
        (thread_hooks._read, thread_hooks._put),
    ]
    before = sys.gettrace(), sys.getprofile()
    for read, put in ways:
        try:
            sys.setprofile(trace)
            sys.settrace(trace)
            both = read()
            put(*thread_hooks._NONE)
            nothing = read()
            cleared = sys.getprofile(), sys.gettrace()
            put(*both)
            restored = sys.getprofile(), sys.gettrace()
            put(thread_hooks._NONE[0], both[1])
            one = sys.getprofile(), sys.gettrace()
        finally:
            sys.setprofile(before[1])
            sys.settrace(before[0])
        assert both[0][0] and both[1][0] and nothing == thread_hooks._NONE
        assert cleared == (None, None) and restored == (trace, trace) and one == (None, trace)
