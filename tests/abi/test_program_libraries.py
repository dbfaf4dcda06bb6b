"""Libraries of compiled programs: those that call MPI belong to a rank, as its globals do."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import pysmpi
from pysmpi.cli.cc import line

PROGRAMS = Path(__file__).parent / "programs"
MPICH = Path(sys.prefix)

pytest.importorskip(
    "pysmpi.abi.engine", reason="pysmpi was installed without a C compiler, or not on Linux"
)
if shutil.which("cc") is None:
    pytest.skip("there is no C compiler", allow_module_level=True)

ORIGIN = "-Wl,-rpath,$ORIGIN"


def build(folder: Path, *last: str, mpich: bool = False) -> str:
    """The program `reader` with its library and its plug-in."""
    for words in (
        ["-fPIC", "-shared", "shelf.c", "-o", "libshelf.so.1", "-Wl,-soname,libshelf.so.1"],
        ["-fPIC", "-shared", "plugin.c", "-o", "libplugin.so", "-l:libshelf.so.1", ORIGIN],
        ["reader.c", "-o", "reader", "-l:libshelf.so.1", "-ldl", *last],
    ):
        words = [str(PROGRAMS / word) if word.endswith(".c") else word for word in words]
        words = ["-g", f"-L{folder}", *words]
        if mpich:
            words += [f"-I{MPICH / 'include'}", "-lmpi", f"-L{MPICH / 'lib'}"]
            words = ["cc", "-fPIE", *words, f"-Wl,-rpath,{MPICH / 'lib'}"]
        subprocess.run(words if mpich else line("cc", words), check=True, cwd=folder)
    return str(folder / "reader")


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> str:
    return build(tmp_path_factory.mktemp("reader"), ORIGIN)


def expected(size: int, plugin: bool) -> list[str]:
    words = 5 if plugin else 3
    rows = []
    for rank in range(size):
        before = (rank - 1) % size
        books = 8 + rank
        rows.append(
            f"rank {rank}: -n 4, word here at {words}, got {2 * (8 + before)}, same 1, "
            f"variable READER={rank}"
        )
        if plugin:
            books += 100
            rows.append(f"rank {rank}: plug-in {20 * (108 + before) + size}, again 1")
        rows.append(f"closed with {books} books after {1 + plugin} calls")
    return sorted(rows)


@pytest.mark.parametrize("size", [1, 5])
def test_libraries_that_call_mpi_are_the_ranks(
    reader: str, size: int, capfd: pytest.CaptureFixture[str]
) -> None:
    plugin = str(Path(reader).parent / "libplugin.so")
    for _ in range(2):  # a run leaves nothing to the next one
        pysmpi.run(reader, nprocs=size, args=["-n", "4", "-p", plugin, "here"])
        assert sorted(capfd.readouterr().out.splitlines()) == expected(size, True)


@pytest.mark.peers
def test_libraries_that_were_compiled_for_mpich(tmp_path: Path) -> None:
    program = build(tmp_path, mpich=True)
    words = [program, "-n", "4", "-p", str(tmp_path / "libplugin.so"), "here"]
    variables = {**os.environ, "LD_LIBRARY_PATH": str(tmp_path)}
    for command in (
        [str(MPICH / "bin" / "mpiexec"), "-n", "3"],
        [sys.executable, "-m", "pysmpi", "run", "-q", "-n", "3"],
    ):
        done = subprocess.run([*command, *words], capture_output=True, text=True, env=variables)
        assert sorted(done.stdout.splitlines()) == expected(3, True), (command, done.stderr)


def test_a_report_names_lines_in_libraries(reader: str) -> None:
    settings = {"smpi/privatization": "none"}
    result = pysmpi.run(reader, nprocs=3, args=["-n", "4", "here"], check=False, cfg=settings)
    # All ranks share `optind`, so those after the first one see no options and go on.
    assert "shelf.c:25 in lend" in str(result.deadlock)


def test_options_of_what_ranks_have_of_their_own(tmp_path: Path) -> None:
    source = tmp_path / "shared.c"
    source.write_text(
        "#include <mpi.h>\n#include <stdio.h>\n#include <stdlib.h>\n"
        'int ours; static void last(void) { puts("last"); }\n'
        "__attribute__((constructor)) static void first(void) { ours = 10; }\n"
        "int main(int n, char **v) {\n"
        "    int rank; MPI_Init(&n, &v); MPI_Comm_rank(MPI_COMM_WORLD, &rank);\n"
        "    atexit(last); ours++; MPI_Barrier(MPI_COMM_WORLD);\n"
        '    printf("%d sees %d\\n", rank, ours); MPI_Finalize(); return 0; }\n'
    )
    program = str(tmp_path / "shared")
    subprocess.run(line("cc", [str(source), "-o", program]), check=True)

    def run(setting: str) -> list[str]:
        command = [sys.executable, "-m", "pysmpi", "run", "-q", "-n", "3"]
        if setting:
            command += ["--cfg", f"smpi/privatization:{setting}"]
        done = subprocess.run([*command, program], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return sorted(done.stdout.splitlines())

    assert run("") == run("mmap") == ["0 sees 11", "1 sees 11", "2 sees 11", "last", "last", "last"]
    assert run("none") == ["0 sees 13", "1 sees 13", "2 sees 13", "last", "last", "last"]
    with pytest.raises(pysmpi.UsageError, match="needs no library libnone.so"):
        pysmpi.run(program, nprocs=1, cfg={"smpi/privatization": "libs libnone.so"})
    with pytest.raises(pysmpi.UsageError, match="expected copy, none, or 'libs NAME:NAME'"):
        pysmpi.run(program, nprocs=1, cfg={"smpi/privatization": "some"})


def test_libraries_without_mpi_are_shared_unless_the_user_says(tmp_path: Path) -> None:
    (tmp_path / "count.c").write_text("int count; int next(void) { return ++count; }\n")
    (tmp_path / "user.c").write_text(
        "#include <mpi.h>\n#include <stdio.h>\nint next(void); extern int count;\n"
        "int main(int n, char **v) {\n"
        "    MPI_Init(&n, &v); next(); MPI_Barrier(MPI_COMM_WORLD);\n"
        '    n = next(); printf("%d %d\\n", n, count); MPI_Finalize(); return 0; }\n'
    )
    library, program = str(tmp_path / "libcount.so"), str(tmp_path / "user")
    words = ["-shared", "-fPIC", str(tmp_path / "count.c"), "-Wl,-soname,libcount.so"]
    subprocess.run(["cc", *words, "-o", library], check=True)
    words = [str(tmp_path / "user.c"), "-o", program, f"-L{tmp_path}", "-lcount", ORIGIN]
    subprocess.run(line("cc", words), check=True)

    def run(*words: str) -> list[str]:
        command = [sys.executable, "-m", "pysmpi", "run", "-q", "-n", "2", *words, program]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return sorted(done.stdout.splitlines())

    # The program has a copy of the variable, which the library uses while the rank runs.
    assert run() == ["2 2", "2 2"]
    assert run("--cfg", "smpi/privatization:libs libcount.so") == ["2 2", "2 2"]
    assert run("--cfg", f"smpi/privatize-libs:{library}") == ["2 2", "2 2"]


def test_the_stack_of_a_program_has_the_size_that_the_user_says(tmp_path: Path) -> None:
    source = tmp_path / "arrays.c"
    source.write_text(
        "#include <mpi.h>\n#include <string.h>\n"
        "__attribute__((noinline)) static int fill(int rank) {\n"
        "    char data[3 << 20]; memset(data, rank, sizeof data);\n"
        "    MPI_Bcast(data, 10, MPI_CHAR, 0, MPI_COMM_WORLD); return data[5]; }\n"
        "int main(int n, char **v) {\n"
        "    int rank; MPI_Init(&n, &v); MPI_Comm_rank(MPI_COMM_WORLD, &rank);\n"
        "    rank = fill(rank); MPI_Finalize(); return rank; }\n"
    )
    program = str(tmp_path / "arrays")
    subprocess.run(line("cc", ["-g", str(source), "-o", program]), check=True)
    for size in ("8192", "4MiB"):
        settings = {"contexts/stack-size": size}
        assert pysmpi.run(program, nprocs=2, cfg=settings).exit_status == 0
    command = [sys.executable, "-m", "pysmpi", "run", "-q", "-n", "2"]
    command += ["--cfg", "contexts/stack-size:2560", program]
    done = subprocess.run(command, capture_output=True, text=True)
    assert "rank 0 used more than its stack of 2560KiB" in done.stderr, done.stderr
    assert re.search(r"arrays.c:\d in fill", done.stderr) and done.returncode == 139
    with pytest.raises(pysmpi.UsageError, match="contexts/stack-size: expected 64KiB or more"):
        pysmpi.run(program, nprocs=1, cfg={"contexts/stack-size": "63"})


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("faulty")
    words = ["-fPIC", "-shared", str(PROGRAMS / "faulty.c"), "-o"]
    subprocess.run(line("cc", ["-g", *words, str(folder / "libfaulty.so")]), check=True)
    subprocess.run(line("cc", [*words, str(folder / "libbare.so")]), check=True)
    (folder / "prog.py").write_text(
        "import ctypes, sys\nfrom mpi4py import MPI\n"
        "lib = ctypes.CDLL(sys.argv[1])\nif lib.rank_of_caller() == 1:\n"
        "    getattr(lib, sys.argv[2])(0)\nMPI.COMM_WORLD.Barrier()\n"
    )
    return folder


@pytest.mark.parametrize(
    ("library", "function", "text", "status"),
    [
        ("faulty", "store", r"got signal SIGSEGV at \S*faulty.c:16 in store at", 139),
        ("bare", "divide", r"got signal SIGFPE in divide of libbare.so at", 136),
        ("bare", "sort", r"got signal SIGSEGV in store of libbare.so at", 139),
        ("bare", "bus", r"got signal SIGBUS in \w+ of libc.so.6 at", 135),
        ("bare", "stop", r"called abort at", 134),
    ],
)
def test_a_fault_of_a_library_names_rank_and_function(
    faulty: Path, library: str, function: str, text: str, status: int
) -> None:
    command = [sys.executable, "-m", "pysmpi", "run", "-q", "-n", "3", "prog.py"]
    command += [f"./lib{library}.so", function]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, cwd=faulty)
    assert re.search(rf"rank 1 {text} prog.py:5 in <module>", done.stderr), done.stderr
    assert done.returncode == status and "Fatal Python error" not in done.stderr


@pytest.mark.parametrize("words", [[], ["unsynchronized"]])
def test_the_streams_of_cxx_write_to_those_of_the_rank(
    tmp_path: Path, words: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    if shutil.which("c++") is None:
        pytest.skip("there is no C++ compiler")
    source, program = tmp_path / "streams.cpp", str(tmp_path / "streams")
    source.write_text(
        "#include <mpi.h>\n#include <cstdio>\n#include <iomanip>\n#include <iostream>\n"
        "int main(int n, char **v) {\n"
        "    std::ios::sync_with_stdio(n == 1); MPI_Init(&n, &v);\n"
        "    int rank; MPI_Comm_rank(MPI_COMM_WORLD, &rank);\n"
        '    std::cout << "rank " << rank << " "; MPI_Barrier(MPI_COMM_WORLD);\n'
        '    std::cout << std::setprecision(3 + rank) << 3.14159265 << "\\n";\n'
        '    std::printf("c %d\\n", rank); std::cerr << "error " << rank << "\\n";\n'
        "    MPI_Finalize(); return 0; }\n"
    )
    subprocess.run(line("cxx", [str(source), "-o", program]), check=True)
    pysmpi.run(program, nprocs=3, args=words)
    done = capfd.readouterr()
    wanted = ["rank 0 3.14", "rank 1 3.142", "rank 2 3.1416", "c 0", "c 1", "c 2"]
    assert sorted(done.out.splitlines()) == sorted(wanted)
    assert sorted(done.err.splitlines()) == ["error 0", "error 1", "error 2"]


@pytest.mark.parametrize("abi", ["mpich", "openmpi", "standard"])
def test_a_tool_that_a_program_is_linked_with_gets_its_calls(
    abi: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    tool, program = str(PROGRAMS / "counter.c"), str(PROGRAMS / "senders.c")
    for words in (
        ["-fPIC", "-shared", tool, "-o", "libcounter.so"],
        [program, "-o", "senders", "-L.", "-lcounter", ORIGIN],
    ):
        subprocess.run(line("cc", ["--abi", abi, *words]), check=True, cwd=tmp_path)
    pysmpi.run(str(tmp_path / "senders"), nprocs=4)
    sends = [0, 1, 2, 0]
    assert sorted(capfd.readouterr().out.splitlines()) == [
        f"rank {rank}: {number} sends" for rank, number in enumerate(sends)
    ]
