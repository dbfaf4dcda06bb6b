"""The functions of the MPI libraries, read from `functions.txt`, and their entry points in C.

A line of the table is the prototype of a function in C without the prefix `MPI_`. `+` after the
name adds the form for large counts, which ends with `_c`: N is then a count of 64 bits instead of
an `int`, D a displacement (`MPI_Aint`), and A, which is an address, stays one of 64 bits.

`python pysmpi/abi/table.py FILE` writes the entry points. Builds run it, so it imports nothing of
pysmpi.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

TABLE = Path(__file__).with_name("functions.txt")
# A letter for each class of handles, for `calls.c`.
HANDLES = {
    "Comm": "C", "Datatype": "D", "Request": "R", "Message": "M", "Op": "O", "Group": "G",
    "Info": "I", "Errhandler": "E", "Session": "S", "Win": "W", "File": "F",
}  # fmt: skip
# Types in C of values; handles are integers of 32 bits, but files are pointers (MPICH).
_TYPES = {
    "int": "int", "Count": "long long", "Aint": "long", "Offset": "long long", "Fint": "int",
    "File": "void *", "double": "double",
}  # fmt: skip
# Calls of the C library that Python serves; their numbers are in `engine.h`.
OTHERS = (
    ("clock", "i"), ("sleep", "i"), ("write", "ipi"), ("read", "ipi"), ("abort", ""),
    ("getpid", ""), ("hostname", "pi"), ("exit", "ii"), ("load", "pi"),
    ("execute", "i"), ("execute_flops", "i"), ("sample", "ipipii"), ("sampled", "ipip"),
    ("shared_malloc", "ipi"), ("shared_free", "p"), ("shared_call", "ppp"),
    ("open", "pi"),
)  # fmt: skip


class Argument(NamedTuple):
    """An argument: its type in the table, the stars before its name, the brackets behind it."""

    type: str
    stars: str
    name: str
    brackets: str
    constant: bool = False

    @property
    def pointer(self) -> bool:
        return bool(self.stars or self.brackets) or self.type.endswith("function")


class Function(NamedTuple):
    """A function; `wide` is the form for large counts."""

    name: str
    result: str
    arguments: tuple[Argument, ...]
    wide: bool
    sized: bool  # whether pointers to counts are of another size in the form for large counts

    @property
    def kinds(self) -> str:
        """A letter for each argument: see `engine.h`."""
        letters = [_kind(argument) for argument in self.arguments if argument.type != "..."]
        if self.sized:
            letters.append("8" if self.wide else "4")
        return "".join(letters)


def _kind(argument: Argument) -> str:
    if argument.pointer or argument.type.startswith("T_"):
        return "p"
    return HANDLES.get(argument.type, "i")


def functions() -> Iterator[Function]:
    """The functions of the table, and their forms for large counts."""
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        parts = re.fullmatch(r"(?:(\w+) )?(\w+)(\+?)\((.*)\)", line)
        assert parts is not None, line
        result, name, both, text = parts.groups()
        arguments = tuple(_argument(word) for word in text.split(", ") if word)
        sized = bool(both) and any(each.pointer and each.type in "ND" for each in arguments)
        yield Function(name, result or "int", arguments, False, sized)
        if both:
            yield Function(name + "_c", result or "int", arguments, True, sized)


def _argument(text: str) -> Argument:
    if text == "...":
        return Argument(text, "", "", "")
    parts = re.fullmatch(r"(const )?(\w+) (\**)(\w+)((?:\[\d*\])*)", text)
    assert parts is not None, text
    constant, kind, stars, name, brackets = parts.groups()
    return Argument(kind, stars, name, brackets, constant is not None)


def _type(argument: Argument, wide: bool) -> str:
    if argument.pointer:
        return "void *"
    name = argument.type
    if name in "NDA":
        name = (
            {"N": "Count", "D": "Aint", "A": "Count"}[name]
            if wide
            else ("Aint" if name == "A" else "int")
        )
    return (
        "void *" if name.startswith("T_") and name not in _T_INTEGERS else _TYPES.get(name, "int")
    )


_T_INTEGERS = ("T_cb_safety", "T_source_order")


def entry_points() -> str:
    """The source in C of all entry points."""
    lines = [
        "/* Written by pysmpi/abi/table.py. */",
        '#include "engine.h"',
        "#define SITE __builtin_return_address(0)",
        '#define EXPORT __attribute__((visibility("default")))',
    ]
    table = list(functions())
    lines.append("const psm_function psm_functions[] = {")
    lines += [f'    {{"{name}", "{kinds}"}},' for name, kinds in OTHERS]
    lines += [f'    {{"{each.name}", "{each.kinds}"}},' for each in table]
    lines += ["};", f"const int psm_functions_count = {len(OTHERS) + len(table)};"]
    for number, each in enumerate(table, len(OTHERS)):
        words, values = [], []
        for place, argument in enumerate(each.arguments):
            if argument.type == "...":
                words.append("...")
                continue
            kind = _type(argument, each.wide)
            words.append(f"{kind} a{place}")
            values.append(f"(long long)a{place}")
        kind = _TYPES.get(each.result, "int")
        call = "psm_real" if kind == "double" else "psm_call"
        cast = "" if kind == "double" else f"({kind})"
        lines += [
            f"EXPORT {kind} PMPI_{each.name}({', '.join(words) or 'void'}) {{",
            f"    const long long values[] = {{{', '.join([*values, '0'])}}};",
            f"    return {cast}{call}({number}, values, SITE);",
            "}",
            f"EXPORT {kind} MPI_{each.name}({', '.join(words) or 'void'}) "
            f'__attribute__((weak, alias("PMPI_{each.name}")));',
        ]
    lines += [
        "/* Objects whose addresses are constants of MPI. */",
        "static int status[10], unweighted, empty;",
        "EXPORT int *MPI_F_STATUS_IGNORE = status, *MPI_F_STATUSES_IGNORE = status;",
        "EXPORT void *MPI_F08_STATUS_IGNORE = status, *MPI_F08_STATUSES_IGNORE = status;",
        "EXPORT int *const MPI_UNWEIGHTED = &unweighted, *const MPI_WEIGHTS_EMPTY = &empty;",
        "EXPORT int MPIR_Dup_fn(int object, int key, void *state, void *value, void *result,",
        "                       int *flag) {",
        "    *(void **)result = value;",
        "    *flag = 1;",
        "    return 0;",
        "}",
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(entry_points(), encoding="utf-8")
