"""Programs for other binary interfaces than MPICH's: layouts, constants, names and refusals."""

from __future__ import annotations

import re

import pytest

from pysmpi.abi import elf
from pysmpi.abi.families import constants
from pysmpi.abi.interfaces import UnservedError, interface_of
from pysmpi.errors import UsageError
from pysmpi.mpi import MPI


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
        ("libm.so.6", None),
        ("libmpfr.so.6", None),
    ],
)
def test_libraries_are_replaced(name: str, expected: tuple[str, str] | None) -> None:
    assert interface_of(name) == expected
    if expected is not None:
        assert len(expected[1]) <= len(name)  # the name is replaced in the file
        assert interface_of(expected[1]) is not None


@pytest.mark.parametrize("name", ["libmpi.so.1", "libmpi.so.20", "libmpi_cxx.so.40"])
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
