"""Programs for other binary interfaces than MPICH's: layouts, constants, names and refusals."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import pysmpi
from pysmpi.abi import elf, interfaces
from pysmpi.abi.families import constants
from pysmpi.abi.header import header
from pysmpi.abi.interfaces import INTERFACES, UnservedError, interface_of
from pysmpi.cli.cc import line
from pysmpi.cli.fc import line as fortran_line
from pysmpi.errors import UsageError
from pysmpi.mpi import MPI

PROGRAMS = Path(__file__).parent / "programs"
DATA = Path(__file__).parents[1] / "data"


def test_the_table_has_the_values_of_mpi4py() -> None:
    compared = 0
    for group, name, values in constants():
        value = getattr(MPI, name, None)
        # Messages have the numbers of requests, and names of ports may be longer than in MPICH.
        if value is None or values[0] == "-" or group == "M" or name == "MAX_PORT_NAME":
            continue
        if value == MPI.DATATYPE_NULL and name != "DATATYPE_NULL":  # one that this system lacks
            continue
        number = getattr(value, "handle", value) if len(group) == 1 else value
        expected = int(values[0], 0)
        if len(group) == 1:
            number, expected = number & 0xFFFFFFFF, expected & 0xFFFFFFFF
        assert number == expected, name
        compared += 1
    assert compared > 200


def test_handles_of_an_interface_differ() -> None:
    for column in (0, 1, 2):
        seen: dict[tuple[str, str], set[str]] = {}
        for group, _, values in constants():
            if len(group) == 1 and values[column] != "-":
                seen.setdefault((group, values[column]), set()).add(values[0])
        # Two names may stand for one object, as C_COMPLEX and C_FLOAT_COMPLEX do.
        assert all(len(numbers) == 1 for numbers in seen.values())


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("libmpi.so.12", ("mpich", "psm_mpich.so")),
        ("libmpich.so.12", ("mpich", "psm_mpich.so")),
        ("libmpi_cray.so.12", ("mpich", "psm_mpich.so")),
        ("libmpifort.so.12", ("mpich", "psm_fort.so")),
        ("libmpichfort.so.12", ("mpich", "psm_fort.so")),
        ("libmpi.so.40", ("openmpi", "psm_ompi.so")),
        ("libmpi_mpifh.so.40", ("openmpi", "psm_ompi.so")),
        ("libmpi_usempif08-gfortran.so.40", ("openmpi", "psm_ompi.so")),
        ("libmpi_usempi_ignore_tkr.so.40", ("openmpi", "psm_ompi.so")),
        ("libmpi_abi.so.1", ("standard", "psm_std.so")),
        ("libmpi_cxx.so.40", None),  # these call the library of C
        ("libmpichcxx.so.12", None),
        ("libmpicxx.so.12", None),
        ("libm.so.6", None),
        ("libmpfr.so.6", None),
    ],
)
def test_libraries_are_replaced(name: str, expected: tuple[str, str] | None) -> None:
    assert interface_of(name) == expected
    if expected is not None:
        assert len(expected[1]) <= len(name)  # the name is replaced in the file
        assert interface_of(expected[1]) is not None


@pytest.mark.parametrize("name", ["libmpi.so.1", "libmpi.so.20", "libmpi_java.so.40"])
def test_other_libraries_are_not_served(name: str) -> None:
    with pytest.raises(UnservedError):
        interface_of(name)


def test_refusals_have_one_line() -> None:
    for names, words in (
        (["libmpi.so.20"], "another MPI library (libmpi.so.20)"),
        (["libmpi.so.12", "libmpi.so.40"], "two MPI libraries (MPICH and Open MPI)"),
    ):
        with pytest.raises(UsageError, match=re.escape(words)) as caught:
            elf.replacements("prog", names)
        assert "\n" not in str(caught.value)


INCLUDE = Path(sys.prefix) / "include"
COMPILES = shutil.which("cc") is not None and interfaces.file_of("psm_ompi.so").exists()
needs_compiler = pytest.mark.skipif(not COMPILES, reason="there is no C compiler")


@needs_compiler
@pytest.mark.parametrize("interface", list(INTERFACES))
def test_a_program_has_the_same_results_with_each_interface(
    interface: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "kinds"
    words = ["--abi", interface, "-g", str(PROGRAMS / "kinds.c"), "-o", str(target)]
    subprocess.run(line("cc", words), check=True)
    pysmpi.run(str(target), nprocs=3)
    ranks = [
        f"rank {i} got {(i - 1) % 3} from {(i - 1) % 3} tag 7 count 1 null 1" for i in range(3)
    ]
    same = (
        "pn 1 1", "attr 1 42", "ub 1 2147483647", "op 11", "err 1", "sub 1 1 1",
        "MPI_COMM_WORLD 14", "cmp 1", "null 1", "w 1",
    )  # fmt: skip
    assert sorted(capfd.readouterr().out.splitlines()) == sorted([*ranks, *(3 * list(same))])


@needs_compiler
@pytest.mark.parametrize("interface", list(INTERFACES))
def test_handles_that_calls_store_are_not_read(
    interface: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "results"
    words = ["--abi", interface, "-g", str(PROGRAMS / "results.c"), "-o", str(target)]
    subprocess.run(line("cc", words), check=True)
    pysmpi.run(str(target), nprocs=2, compute="none")
    same = (
        "got 1 1", "no process 1 1 1 1", "error handler 1 1", "contents 2 1", "sum 1",
    )  # fmt: skip
    assert sorted(capfd.readouterr().out.splitlines()) == sorted(4 * list(same))


@needs_compiler
@pytest.mark.parametrize(
    ("library", "same", "differ"),
    [
        ("libmpifort.so.12", "mpi_comm_eq", "mpi_comm_neq"),
        ("libmpi_usempif08.so.40", "ompi_comm_op_eq", "ompi_comm_op_ne"),
    ],
)
def test_programs_with_the_module_of_another_library(
    library: str, same: str, differ: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Comparisons of handles are served. What takes arrays as descriptors is refused."""
    same, differ = (f"__mpi_f08_types_MOD_{name}" for name in (same, differ))
    (tmp_path / "stub.c").write_text(
        f"int {same}(int *a, int *b) {{ return 7; }}\n"
        f"int {differ}(int *a, int *b) {{ return 7; }}\n"
        "void mpi_send_f08ts_(void) {}\n"
    )
    (tmp_path / "main.c").write_text(
        "#include <stdio.h>\n"
        f"int {same}(int *, int *), {differ}(int *, int *);\n"
        "void mpi_init_(int *), mpi_finalize_(int *), mpi_send_f08ts_(void);\n"
        "int main(void) { int error, one = 1, two = 2; mpi_init_(&error);\n"
        f'printf("%d %d %d %d\\n", {same}(&one, &one), {same}(&one, &two),\n'
        f"       {differ}(&one, &one), {differ}(&one, &two));\n"
        "#ifdef SENDS\nmpi_send_f08ts_();\n#endif\n"
        "mpi_finalize_(&error); return 0; }\n"
    )
    stub = tmp_path / library
    subprocess.run(
        ["cc", "-shared", "-fPIC", f"-Wl,-soname,{library}", tmp_path / "stub.c", "-o", stub],
        check=True,
    )
    words = [
        "cc",
        tmp_path / "main.c",
        "-fPIE",
        "-pie",
        stub,
        "-Wl,--unresolved-symbols=ignore-all",
    ]
    subprocess.run([*words, "-o", tmp_path / "main"], check=True)
    pysmpi.run(str(tmp_path / "main"), nprocs=2, compute="none")
    assert capfd.readouterr().out == "1 0 0 1\n" * 2
    subprocess.run([*words, "-DSENDS", "-o", tmp_path / "sends"], check=True)
    with pytest.raises(UsageError, match="sends: uses mpi_send_f08ts_, .* with `pysmpi fc`"):
        pysmpi.run(str(tmp_path / "sends"), nprocs=2)


def _values(header: str, folder: str, place: Path, names: list[str]) -> list[str]:
    """The constants and the types of a header, as a program in C prints them."""
    lines = [f'printf("{name} %lld\\n", (long long)(MPI_{name}));' for name in names]
    lines += [
        f'printf("{name} %zu\\n", sizeof(MPI_{name}));'
        for name in ("Comm", "Datatype", "File", "Aint", "Count", "Offset", "Status")
    ]
    lines += [
        f'printf("{name} %zu\\n", offsetof(MPI_Status, {name}));'
        for name in ("MPI_SOURCE", "MPI_TAG", "MPI_ERROR")
    ]
    source = place / "values.c"
    source.write_text(
        f'#include <stddef.h>\n#include <stdio.h>\n#include "{header}"\n'
        f"int main(void) {{\n{chr(10).join(lines)}\nreturn 0;\n}}\n",
        encoding="utf-8",
    )
    target = place / "values"
    subprocess.run(["cc", "-w", f"-I{folder}", str(source), "-o", str(target)], check=True)
    return subprocess.run([target], capture_output=True, text=True, check=True).stdout.splitlines()


@needs_compiler
def test_constants_and_layouts_of_the_standard_are_those_of_its_header(tmp_path: Path) -> None:
    if not (INCLUDE / "mpi_abi.h").exists():
        pytest.skip("the header mpi_abi.h of MPICH is not installed")
    text = (INCLUDE / "mpi_abi.h").read_text(encoding="utf-8")
    names = [
        name
        for _, name, values in constants()
        if values[2] != "-" and re.search(rf"\bMPI_{name}\b", text)
    ]
    names += ["IN_PLACE", "BOTTOM", "STATUS_IGNORE", "UNWEIGHTED", "WEIGHTS_EMPTY"]
    own = tmp_path / "own"
    own.mkdir()
    (own / "mpi.h").write_text(header("standard"), encoding="utf-8")
    ours = _values("mpi.h", str(own), tmp_path, names)
    assert ours == _values("mpi_abi.h", str(INCLUDE), tmp_path, names)
    assert len(ours) > 250


@needs_compiler
def test_constants_and_layouts_of_open_mpi_are_those_of_its_header(tmp_path: Path) -> None:
    facts = (DATA / "openmpi_header.txt").read_text(encoding="utf-8").split("\n")[:-1]
    symbols = {
        name: values[1]
        for group, name, values in constants()
        if len(group) == 1 and values[1] != "-"
    }
    of_handles = [fact for fact in facts if fact.split()[0] in symbols]
    assert [f"{fact.split()[0]} {symbols[fact.split()[0]]}" for fact in of_handles] == of_handles
    values = [fact for fact in facts if fact not in of_handles]
    kinds = ("Comm", "Datatype", "File", "Aint", "Count", "Offset", "Status")
    names = [fact.split()[0] for fact in values]
    own = tmp_path / "own"
    own.mkdir()
    (own / "mpi.h").write_text(header("openmpi"), encoding="utf-8")
    first = [name for name in names if name not in kinds and not name.startswith("MPI_")]
    assert _values("mpi.h", str(own), tmp_path, first) == values
    assert len(of_handles) > 90
    assert len(values) > 200


@pytest.mark.skipif(
    not COMPILES or shutil.which("gfortran") is None, reason="there is no compiler gfortran"
)
@pytest.mark.parametrize("interface", ["mpich", "openmpi"])
def test_programs_in_fortran(
    interface: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for name in ("ring", "ring08"):
        words = ["--abi", interface, str(PROGRAMS / f"{name}.f90"), "-o", str(tmp_path / name)]
        subprocess.run(fortran_line("fc", words), check=True, cwd=tmp_path)
    pysmpi.run(str(tmp_path / "ring"), nprocs=3)
    found = sorted(" ".join(text.split()) for text in capfd.readouterr().out.splitlines())
    same = [
        "MPI_COMM_WORLD 14", "[some value ] T", "any 1 T T", "attr 77 T", "err T",
        "sum 6.0000000000000000 op 123", "ub 2147483647 T",
    ]  # fmt: skip
    ranks = [f"rank {i} got {(i - 1) % 3} from {(i - 1) % 3} 5 T" for i in range(3)]
    assert found == sorted([*(3 * same), *ranks])
    pysmpi.run(str(tmp_path / "ring08"), nprocs=3)
    found = sorted(" ".join(text.split()) for text in capfd.readouterr().out.splitlines())
    ranks = [f"rank {i} got {(i - 1) % 3} {(i - 1) % 3} T" for i in range(3)]
    assert found == sorted([*ranks, "sum 0 T", "sum 3 T", "sum 3 T"])


def test_unknown_interfaces_are_refused() -> None:
    with pytest.raises(UsageError, match="--abi: expected mpich, openmpi, standard, got lam"):
        line("cc", ["--abi", "lam", "a.c"])
    with pytest.raises(UsageError, match="expected mpich or openmpi for Fortran, got standard"):
        fortran_line("fc", ["--abi=standard", "a.f90"])
