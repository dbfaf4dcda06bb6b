"""Compiled programs run as Python programs do; MPICH runs the same source."""

from __future__ import annotations

import gc
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest

import pysmpi
from pysmpi.abi import elf
from pysmpi.abi.table import functions
from pysmpi.cli.cc import line

PROGRAMS = Path(__file__).parent / "programs"
MPICH = Path(sys.prefix)
LIBRARY = "{LIBDIR}/{LDLIBRARY}".format(**sysconfig.get_config_vars())

pytest.importorskip(
    "pysmpi.abi.engine", reason="pysmpi was installed without a C compiler, or not on Linux"
)
if shutil.which("cc") is None:
    pytest.skip("there is no C compiler", allow_module_level=True)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., str]:
    """Compile a program of the folder, once, with `pysmpi cc` or for MPICH."""
    folder = tmp_path_factory.mktemp("compiled")

    def compile(name: str, *flags: str, mpich: bool = False) -> str:
        target = folder / f"{Path(name).stem}-{'mpich' if mpich else 'own'}{''.join(flags)}"
        if not target.exists():
            words = ["-g", str(PROGRAMS / name), "-o", str(target), *flags]
            if mpich:
                library = ["-lmpi", f"-L{MPICH / 'lib'}", f"-Wl,-rpath,{MPICH / 'lib'}"]
                words = ["cc", f"-I{MPICH / 'include'}", "-fPIE", "-pie", *words, *library]
            subprocess.run(words if mpich else line("cc", words), check=True)
        return str(target)

    return compile


@pytest.fixture(scope="module")
def talk(compiled: Callable[..., str]) -> str:
    return compiled("talk.c")


def lines(text: str) -> list[str]:
    return sorted(text.splitlines())


def expected(size: int) -> list[str]:
    product = 1
    for i in range(size):
        product *= i + 1
    rows = []
    for rank in range(size):
        before = (rank - 1) % size
        rows += [
            f"rank {rank}: 0 wrong, 1000 from {before}, null 1, counter {100 + rank}",
            f"rank {rank}: product {product} {2**size}, handler 1 0, attribute 5, tags 1, null 1",
            f"rank {rank}: column {' '.join(str(before * 16 + 1 + 4 * i) for i in range(4))}, "
            f"packed 16, null 1",
            f"rank {rank}: put {10 * before}, sum {-1 if rank else size}",
        ]
    return sorted(rows)


@pytest.mark.parametrize("size", [1, 4, 9])
def test_ranks_have_their_own_globals_stacks_and_handles(
    talk: str, size: int, capfd: pytest.CaptureFixture[str]
) -> None:
    pysmpi.run(talk, nprocs=size)
    assert lines(capfd.readouterr().out) == expected(size)


@pytest.mark.peers
@pytest.mark.parametrize("what", ["", "library"])
def test_programs_for_mpich_run_unchanged_and_print_the_same(
    compiled: Callable[..., str], capfd: pytest.CaptureFixture[str], what: str
) -> None:
    program = compiled("talk.c", mpich=True)
    pysmpi.run(program, nprocs=4, args=[what])
    ours = lines(capfd.readouterr().out)
    command = [str(MPICH / "bin" / "mpiexec"), "-n", "4", program, what]
    real = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ours == lines(real.stdout)
    assert ours == expected(4) or what


@pytest.mark.peers
def test_calls_return_and_leave_what_mpich_returns_and_leaves(
    compiled: Callable[..., str], capfd: pytest.CaptureFixture[str]
) -> None:
    real = [str(MPICH / "bin" / "mpiexec"), "-n", "3", compiled("rules.c", mpich=True)]
    wanted = lines(subprocess.run(real, capture_output=True, text=True, check=True).stdout)
    pysmpi.run(compiled("rules.c"), nprocs=3)
    assert lines(capfd.readouterr().out) == wanted
    assert len(wanted) == 30


HOLDS = ["rank 0: end", "rank 1: end"]


@pytest.mark.parametrize("mpich", [False, pytest.param(True, marks=pytest.mark.peers)])
def test_calls_keep_the_rules_of_the_standard(
    compiled: Callable[..., str], tmp_path: Path, capfd: pytest.CaptureFixture[str], mpich: bool
) -> None:
    pysmpi.run(compiled("calls.c", mpich=mpich), nprocs=2, args=[str(tmp_path / "file")])
    assert lines(capfd.readouterr().out) == HOLDS


@pytest.mark.peers
def test_these_rules_hold_with_mpich(compiled: Callable[..., str], tmp_path: Path) -> None:
    command = [str(MPICH / "bin" / "mpiexec"), "-n", "2", compiled("calls.c", mpich=True)]
    real = subprocess.run([*command, str(tmp_path / "file")], capture_output=True, text=True)
    assert lines(real.stdout) == HOLDS


@pytest.mark.parametrize("compute", ["native", "steady"])
def test_the_clock_stops_at_the_entry_points_but_not_in_callbacks(
    compiled: Callable[..., str], capfd: pytest.CaptureFixture[str], compute: str
) -> None:
    pysmpi.run(compiled("clocks.c"), nprocs=2, compute=compute)
    call, block, inside, clocked = map(float, capfd.readouterr().out.split())
    assert call < 1e-6  # a call in Python takes more
    assert block > 1e-3
    assert block / 3 < inside < block * 3
    assert block / 3 < clocked < block * 3


def test_without_compute_a_program_takes_no_time(
    compiled: Callable[..., str], capfd: pytest.CaptureFixture[str]
) -> None:
    settings = {"smpi/simulate-computation": "no", "smpi/wtime": "0"}
    pysmpi.run(compiled("clocks.c"), nprocs=2, cfg=settings)
    assert [*map(float, capfd.readouterr().out.split())] == [0, 0, 0, 0]


def test_a_deadlock_names_the_lines_in_c(talk: str) -> None:
    result = pysmpi.run(talk, nprocs=3, args=["deadlock"], check=False)
    text = str(result.deadlock)
    number = next(
        i
        for i, text in enumerate((PROGRAMS / "talk.c").read_text().splitlines(), 1)
        if "MPI_Recv(&size" in text
    )
    assert f"talk.c:{number} in main" in text and "source=rank+1, tag=5, 4 bytes" in text


def run(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pysmpi", "run", "-q", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def test_exit_prints_what_a_rank_has_not_flushed_and_gives_its_status(talk: str) -> None:
    done = run("-n", "2", talk, "exit")
    assert done.stdout.count("unflushedat the end\n") == 2
    assert done.returncode == 7


def test_abort_of_mpi_and_of_c_end_the_job(talk: str) -> None:
    done = run("-n", "3", talk, "mpi abort")
    assert "called MPI_Abort with error code 9" in done.stderr and done.returncode == 9
    done = run("-n", "3", talk, "abort")
    assert "called abort" in done.stderr and done.returncode == 134


def test_errors_are_fatal_and_name_the_call(talk: str) -> None:
    done = run("-n", "2", talk, "error")
    assert done.returncode != 0 and "talk.c:" in done.stderr
    assert "dest is 2, expected 0 to 1" in done.stderr
    assert "Traceback" not in done.stderr


def test_clocks_and_sleeps_are_simulated(talk: str, capfd: pytest.CaptureFixture[str]) -> None:
    result = pysmpi.run(talk, nprocs=2, args=["sleep"], compute="none")
    assert lines(capfd.readouterr().out) == ["rank 0: 1.5 1.5", "rank 1: 1.5 1.5"]
    assert 1.5 <= result.seconds < 1.6


def test_arguments_and_variables(talk: str) -> None:
    done = run("-n", "1", "-x", "MY_NAME=me", talk, "names", "a b")
    assert done.stdout == "3 words, a b, me\n"


def test_programs_that_ranks_cannot_load_are_refused(tmp_path: Path) -> None:
    (tmp_path / "local.c").write_text(
        "#include <mpi.h>\n__thread int x = 5;\n"
        "int main(int n, char **v) { x += n; MPI_Init(&n, &v); return x; }\n"
    )
    target = str(tmp_path / "local")
    subprocess.run(line("cc", [str(tmp_path / "local.c"), "-o", target]), check=True)
    with pytest.raises(pysmpi.UsageError, match="thread-local variables"):
        pysmpi.run(target, nprocs=1)
    data = bytearray(Path(target).read_bytes())
    data[16] = 2  # the type of executables at fixed addresses
    Path(target).write_bytes(data)
    with pytest.raises(pysmpi.UsageError, match="at fixed addresses"):
        pysmpi.run(target, nprocs=1)
    data[18] = 3  # an older processor
    Path(target).write_bytes(data)
    with pytest.raises(pysmpi.UsageError, match="another processor"):
        pysmpi.run(target, nprocs=1)
    with pytest.raises(pysmpi.UsageError, match="a damaged executable"):
        elf.read(target, bytes(data[:18]) + b"\x3e\0" + bytes(data[20:500]))


def test_every_function_of_the_table_has_one_that_serves_it() -> None:
    from pysmpi.abi import chapters
    from pysmpi.abi.entry import ENTRIES

    chapters.load()
    names = {each.name for each in functions()}
    assert len(names) > 690
    served = {name for name in names if name in ENTRIES or name.removesuffix("_c") in ENTRIES}
    assert names - served == set()
    assert set(ENTRIES) <= names


@pytest.mark.peers
def test_the_header_has_the_values_of_mpich(tmp_path: Path) -> None:
    from pysmpi.abi.header import constants
    from pysmpi.cli.cc import include

    names = [text.split()[1] for text in constants()]
    body = "".join(
        f'#ifdef {name}\nprintf("{name} %lld\\n", (long long){name});\n#endif\n' for name in names
    )
    source = tmp_path / "values.c"
    source.write_text(f"#include <mpi.h>\n#include <stdio.h>\nint main(void) {{\n{body}}}\n")
    values = []
    for folder in (str(include("mpich")), str(MPICH / "include")):
        target = str(tmp_path / "values")
        subprocess.run(["cc", "-w", f"-I{folder}", str(source), "-o", target], check=True)
        done = subprocess.run([target], capture_output=True, text=True, check=True)
        values.append(dict(text.split() for text in done.stdout.splitlines()))
    ours, real = values
    both = ours.keys() & real.keys()
    assert len(both) > 200
    assert {name: ours[name] for name in both} == {name: real[name] for name in both}


def test_no_process_is_left(talk: str) -> None:
    before = children()
    pysmpi.run(talk, nprocs=2, args=["names"])
    assert children() <= before  # those of other tests may end meanwhile


def children() -> set[str]:
    tasks = Path("/proc/self/task").glob("*/children")
    return {child for task in tasks for child in task.read_text().split()}


@pytest.fixture(scope="module")
def objects(tmp_path_factory: pytest.TempPathFactory) -> str:
    if shutil.which("c++") is None:
        pytest.skip("there is no C++ compiler")
    target = str(tmp_path_factory.mktemp("objects") / "objects")
    words = ["-g", "-O0", str(PROGRAMS / "objects.cpp"), "-o", target]
    subprocess.run(line("cxx", words), check=True)
    return target


def test_objects_of_cxx_are_made_and_destroyed_for_each_rank(objects: str) -> None:
    done = run("-n", "3", objects)
    assert done.returncode == 0, done.stderr
    wanted = [f"rank {rank} caught 4" for rank in range(3)] + 3 * ["made", "destroyed"]
    assert lines(done.stdout) == sorted(wanted)


@pytest.mark.parametrize(
    "what, text, status",
    [
        ("store", r"rank 1 got signal SIGSEGV at \S*objects.cpp:16 in store", 139),
        (
            "deep",
            r"rank 1 used more than its stack of 256MiB .* at \S*objects.cpp:\d+ in deep",
            139,
        ),
        (
            "throw",
            r"rank 1 got signal SIGABRT in .* of libc\S*, called at \S*objects.cpp:\d+ in ",
            134,
        ),
    ],
)
def test_a_fault_ends_the_job_and_names_its_place(
    objects: str, what: str, text: str, status: int
) -> None:
    done = run("-n", "3", objects, what)
    assert re.search(text, done.stderr), done.stderr
    assert done.returncode == status and "Traceback" not in done.stderr


@pytest.fixture(scope="module")
def ends(compiled: Callable[..., str]) -> str:
    return compiled("ends.c", "-pthread")


def test_a_handle_that_is_not_valid_is_an_error_at_the_line_of_the_call(ends: str) -> None:
    done = run("-n", "1", ends, "handle")
    assert "no comm has the handle 0x44000077" in done.stderr
    assert "in main" in done.stderr and done.returncode == 5


def test_functions_that_mpi_calls_may_leave_with_longjmp(
    ends: str, capfd: pytest.CaptureFixture[str]
) -> None:
    pysmpi.run(ends, nprocs=3, args=["handler"])
    assert lines(capfd.readouterr().out) == [f"rank {i} jumped 51 times, all 153" for i in range(3)]


def test_a_call_from_another_thread_ends_the_job(ends: str) -> None:
    done = run("-n", "2", ends, "threads")
    assert "rank 0 called MPI from another thread" in done.stderr and done.returncode == 1


def test_an_interruption_ends_a_program_that_computes(ends: str) -> None:
    command = [sys.executable, "-m", "pysmpi", "run", "-n", "2", ends, "loop"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as job:
        assert job.stdout is not None
        assert job.stdout.readline() == b"loops\n"
        job.send_signal(signal.SIGINT)
        _, text = job.communicate(timeout=60)
    assert b"interrupted at t=" in text and job.returncode == 130


@pytest.mark.parametrize(
    ("end", "text", "status"),
    [
        ("exit", "ended by sys.exit(7)", 3),
        ("abort", "rank 1 called abort", 134),
        ("crash", "rank 1 got signal SIGSEGV at ", 139),
        ("deadlock", "cycle: 0 -> 1 (Recv)", 3),
    ],
)
def test_ends_leave_nothing_behind(ends: str, end: str, text: str, status: int) -> None:
    def mappings() -> int:
        return len(Path("/proc/self/maps").read_text().splitlines())

    before = 0
    for i in range(12):
        result = pysmpi.run(ends, nprocs=2, args=[end], check=False)
        assert result.exit_status == status
        if i == 3:
            gc.collect()
            before = mappings()
    gc.collect()
    assert mappings() - before < 10  # a copy of the program has four or more
    assert text in str(result.deadlock or result.error)


@pytest.mark.parametrize("compute", ["native", "none"])
def test_the_macros_of_smpi(
    compiled: Callable[..., str], capfd: pytest.CaptureFixture[str], compute: str
) -> None:
    pysmpi.run(compiled("sampled.c"), nprocs=4, compute=compute, host_speed="1Gf")
    rows = [line.split() for line in capfd.readouterr().out.splitlines()]
    assert len(rows) == 4
    for here, local, total, passed, flops, _, last, mine, value, made in rows:
        assert (here, total) == ("5", "6")
        assert float(local) > 0.01 if compute == "native" else float(local) < 1e-6
        assert float(passed) == pytest.approx(0.75, rel=1e-3)
        assert float(flops) == pytest.approx(2.0, rel=1e-3)
        assert (mine, value, made) == ("1", "49", "1")
        assert last == rows[0][6]  # one memory


def test_compiled_programs_and_those_of_python_start_each_other(
    compiled: Callable[..., str], capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    parent, python = compiled("parent.c"), tmp_path / "child.py"
    python.write_text(
        "import sys\nfrom mpi4py import MPI\nparent = MPI.Comm.Get_parent()\n"
        "from array import array\nvalue, total = array('i', [20]), array('i', [0])\n"
        "if parent != MPI.COMM_NULL:\n"
        "    parent.Bcast(value, 0)\n    value[0] += MPI.COMM_WORLD.rank\n"
        "    parent.Reduce(value, None, MPI.SUM, 0)\n    parent.Disconnect()\n"
        "else:\n    children = MPI.COMM_SELF.Spawn(sys.argv[1], [], 2)\n"
        "    children.Bcast(value, MPI.ROOT)\n    children.Reduce(None, total, MPI.SUM, MPI.ROOT)\n"
        "    print('children added', total[0])\n    children.Disconnect()\n"
    )
    script = tmp_path / "started"
    script.write_text(f"#!{sys.executable}\n{python.read_text()}")
    script.chmod(0o755)
    for first, second in ((parent, parent), (parent, str(script)), (str(python), parent)):
        pysmpi.run(first, nprocs=1, args=[second])
        assert capfd.readouterr().out == "children added 41\n", (first, second)


def test_to_load_the_first_compiled_program_takes_no_simulated_time(
    compiled: Callable[..., str], tmp_path: Path
) -> None:
    """pysmpi's modules for compiled programs are then imported in a rank."""
    (tmp_path / "spawning.py").write_text(
        "import sys\nfrom array import array\nfrom mpi4py import MPI\n"
        "value, total = array('i', [20]), array('i', [0])\n"
        "children = MPI.COMM_SELF.Spawn(sys.argv[1], [], 2)\n"
        "children.Bcast(value, MPI.ROOT)\n"
        "children.Reduce(None, total, MPI.SUM, MPI.ROOT)\nchildren.Disconnect()\n"
    )
    (tmp_path / "twice.py").write_text(
        "import sys, pysmpi\nfor _ in range(2):\n"
        "    result = pysmpi.run('spawning.py', nprocs=1, args=sys.argv[1:], compute='none')\n"
        "    print(result.seconds)\n"
        "    for rank in result.ranks:\n"
        "        lasted = rank['end_seconds'] - rank['begin_seconds']\n"
        "        assert rank['communication_seconds'] > 0.9 * lasted, rank\n"
    )
    done = subprocess.run(
        [sys.executable, "twice.py", compiled("parent.c")], cwd=tmp_path, capture_output=True,
        text=True, check=False, timeout=100,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.split()
    assert first == second and float(first) < 1e-3


@pytest.mark.skipif(not Path(LIBRARY).exists(), reason="Python has no shared library to embed")
def test_the_interpreter_of_the_process_is_not_the_program_s(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """A library may end an interpreter if there is one, as LAMMPS does, but not begin one."""
    (tmp_path / "closes.c").write_text(
        "#include <mpi.h>\n"
        "int Py_IsInitialized(void), Py_FinalizeEx(void); void Py_Initialize(void);\n"
        "int closes(int begin) { int flag; MPI_Initialized(&flag); if (begin) Py_Initialize();\n"
        "    return flag + 10 * Py_IsInitialized() + Py_FinalizeEx(); }\n"
    )
    (tmp_path / "main.c").write_text(
        "#include <mpi.h>\n#include <stdio.h>\nint closes(int); void Py_Initialize(void);\n"
        "int main(int n, char **v) { MPI_Init(&n, &v);\n#ifdef EMBEDS\nPy_Initialize();\n#endif\n"
        'printf("%d\\n", closes(n > 1)); MPI_Finalize(); return 0; }\n'
    )
    path, closes = str(tmp_path / "main"), str(tmp_path / "libcloses.so")
    words = ["-shared", "-fPIC", str(tmp_path / "closes.c"), "-o", closes, LIBRARY]
    subprocess.run(line("cc", words), check=True)
    subprocess.run(line("cc", [f"{path}.c", "-o", path, closes]), check=True)
    pysmpi.run(path, nprocs=2)
    assert capfd.readouterr().out == "1\n1\n"
    with pytest.raises(pysmpi.ProgramError, match="rank 0 called abort"):
        pysmpi.run(path, nprocs=1, args=["begin"])
    assert "a library began an interpreter of Python" in capfd.readouterr().err
    words = ["-DEMBEDS", f"{path}.c", "-o", f"{path}-embeds", closes, LIBRARY]
    subprocess.run(line("cc", words), check=True)
    with pytest.raises(pysmpi.UsageError, match="embeds Python .*Py_Initialize"):
        pysmpi.run(f"{path}-embeds", nprocs=1)
