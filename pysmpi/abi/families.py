"""The entry points of other binary interfaces than MPICH's, and those of Fortran.

They translate arguments and results of the functions of `functions.txt` by the type and the name of
each argument, with the macros that `family.h`, `openmpi.c`, `standard.c` and `fortran.h` define.

Builds call `sources`; the module imports nothing of pysmpi.
"""

from __future__ import annotations

import re
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pysmpi.abi.table import Argument, Function

_table: dict[str, Any] = runpy.run_path(str(Path(__file__).with_name("table.py")))
HANDLES: dict[str, str] = _table["HANDLES"]
OTHERS = _table["OTHERS"]

# Roles of integers by the names of arguments: groups of `constants.txt`.
ROLES = {
    **dict.fromkeys(("source", "dest", "rank", "target_rank", "root", "newrank"), "rank"),
    **dict.fromkeys(("rank_source", "rank_dest"), "rank"),
    **dict.fromkeys(("tag", "sendtag", "recvtag"), "tag"),
    **dict.fromkeys(("errorcode", "errorclass", "error"), "error"),
    **dict.fromkeys(("keyval", "comm_keyval", "type_keyval", "win_keyval"), "keyval"),
    **dict.fromkeys(("required", "provided"), "thread"),
    "assert": "assert", "amode": "mode", "lock_type": "lock", "whence": "whence", "order": "order",
    "typeclass": "typeclass", "split_type": "split", "combiner": "combiner",
    "result": "comparison",
}  # fmt: skip
# Arrays of integers: the group of their elements, and the argument with their number.
ARRAYS = {
    "ranks1": ("rank", "n"), "ranks2": ("rank", "n"),
    "array_of_distribs": ("distribution", "ndims"), "array_of_dargs": ("darg", "ndims"),
}  # fmt: skip
# Buffers that may be constants of MPI.
BUFFERS = frozenset(
    "buf buffer sendbuf recvbuf inbuf inoutbuf outbuf origin_addr result_addr compare_addr base "
    "location".split()
)
WEIGHTS = frozenset(("weights", "sourceweights", "destweights"))
# The limits of strings that functions store.
LIMITS = {
    "Get_processor_name": "MAX_PROCESSOR_NAME",
    "Get_library_version": "MAX_LIBRARY_VERSION_STRING",
    "Error_string": "MAX_ERROR_STRING",
    "Comm_get_name": "MAX_OBJECT_NAME",
    "Type_get_name": "MAX_OBJECT_NAME",
    "Win_get_name": "MAX_OBJECT_NAME",
    "Info_get_nthkey": "MAX_INFO_KEY",
    "File_get_view": "MAX_DATAREP_STRING",
    "Open_port": "MAX_PORT_NAME",
    "Lookup_name": "MAX_PORT_NAME",
    "Session_get_nth_pset": "MAX_PSET_NAME_LEN",
    "Info_get": "MAX_INFO_VAL",
    "Info_get_string": "MAX_INFO_VAL",
}
GET_ATTRIBUTES = ("Comm_get_attr", "Type_get_attr", "Win_get_attr", "Attr_get")
# Functions that read the handle whose address they get; of two, the first.
_CHANGING = re.compile(
    r"\w*_free|Start|Wait|Test|Cancel|Type_commit|Mrecv(_c)?|Imrecv(_c)?|Comm_disconnect|File_close|"
    r"Session_finalize"
)
_CONVERSIONS = re.compile(r"\w+_(c2f|f2c|toint|fromint|c2f08|f082c|f082f|f2f08)")
_PAIRED = frozenset(("Type_get_contents", "Type_get_contents_c"))


def constants() -> Iterator[tuple[str, str, list[str]]]:
    """The group, the name and the values of each constant."""
    group = ""
    for line in Path(__file__).with_name("constants.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            group = line[1:-1]
        elif not line.startswith("#"):
            name, *values = line.split()
            yield group, name, values


class EntryPointText:
    """The entry point of a function, for one language."""

    def __init__(self, number: int, function: Function, fortran: bool) -> None:
        self.number = number
        self.function = function
        self.fortran = fortran
        self.parameters: list[str] = []
        self.lengths: list[str] = []  # of strings, after the other parameters of Fortran
        self.before: list[str] = []
        self.values: list[str] = []
        self.after: list[str] = []
        self.handle = "FINT" if fortran else "HANDLE"
        self.prefix = "f" if fortran else "c"
        self.names = {each.name: f"a{i}" for i, each in enumerate(function.arguments)}
        self.changes = _CHANGING.fullmatch(function.name) is not None
        for place, argument in enumerate(function.arguments):
            self.add(f"a{place}", argument)

    # Arguments.

    def add(self, at: str, argument: Argument) -> None:
        name, kind = self.function.name, HANDLES.get(argument.type)
        if argument.type == "...":
            if not self.fortran:
                self.parameters.append("...")
        elif name in ("Init", "Init_thread") and argument.name in ("argc", "argv") and self.fortran:
            self.values.append("0")
        elif argument.type == "Status":
            self.status(at, argument)
        elif kind and argument.pointer and not argument.type.endswith("function"):
            self.handles(at, argument, kind)
        elif kind and not argument.pointer:
            self.parameter(self.handle, at)
            self.values.append(f"{self.prefix}_in('{kind}', {self.scalar(at)})")
        elif argument.type.endswith("function"):
            self.parameters.append(f"void *{at}")
            self.values.append(f"ADAPTED_{self.prefix}({argument.type}, {at})")
        elif argument.type == "char":
            self.string(at, argument)
        elif argument.pointer:
            self.pointer(at, argument)
        else:
            self.integer(at, argument)

    def parameter(self, kind: str, at: str) -> None:
        self.parameters.append(f"{kind} *{at}" if self.fortran else f"{kind} {at}")

    def scalar(self, at: str) -> str:
        return f"*{at}" if self.fortran else at

    def integer(self, at: str, argument: Argument) -> None:
        kind = self.type(argument)
        self.parameter(kind, at)
        value = self.scalar(at)
        role = ROLES.get(argument.name)
        if argument.name == "disp" and self.function.name == "File_set_view":
            role = "displacement"
        if kind == "void *":
            self.values.append(f"(long long){at}")
        elif role:
            self.values.append(f"in_{role}({value})")
        else:
            self.values.append(f"(long long){value}")

    def type(self, argument: Argument) -> str:
        kind: str = _table["_type"](argument, self.function.wide)
        if self.fortran and self.old and kind == "long":
            return "int"
        return kind

    @property
    def old(self) -> bool:
        """Whether the function is one of MPI-1, whose addresses are default integers in Fortran."""
        return self.function.name in (
            "Address", "Type_extent", "Type_hindexed", "Type_hvector", "Type_lb", "Type_ub",
            "Type_struct", "Attr_get", "Attr_put", "Keyval_create",
        )  # fmt: skip

    def status(self, at: str, argument: Argument) -> None:
        self.parameters.append(f"STATUS *{at}")
        if argument.name == "array_of_statuses":
            n = self.scalar(self.names.get("count") or self.names["incount"])
            self.before += [
                f"const int n{at} = {n} > 0 && !IGNORED_{self.prefix}({at}) ? {n} : 0;",
                f"psm_status *s{at} = alloca(((size_t)n{at} + 1) * sizeof *s{at});",
                f"for (int i = 0; i < n{at}; i++) status_in(&{at}[i], &s{at}[i]);",
            ]
            self.values.append(f"IGNORED_{self.prefix}({at}) ? MPICH_IGNORE : (intptr_t)s{at}")
            self.after.append(f"for (int i = 0; i < n{at}; i++) status_out(&{at}[i], &s{at}[i]);")
            return
        self.before.append(f"psm_status s{at};")
        self.before.append(f"if (!IGNORED_{self.prefix}({at})) status_in({at}, &s{at});")
        self.values.append(f"IGNORED_{self.prefix}({at}) ? MPICH_IGNORE : (intptr_t)&s{at}")
        if not argument.constant:
            self.after.append(f"if (!IGNORED_{self.prefix}({at})) status_out({at}, &s{at});")

    def handles(self, at: str, argument: Argument, kind: str) -> None:
        self.parameters.append(f"{self.handle} *{at}")
        name = self.function.name
        into = f"{self.prefix}_in('{kind}', "
        out = f"{self.prefix}_out('{kind}', "
        if argument.stars == "*" and not argument.brackets:
            start = "UNSET"
            if self.changes:
                start = f"{at} != NULL ? {into}*{at}) : UNSET"
                self.changes = False
            self.before.append(f"long long h{at} = {start};")
            self.values.append(f"{at} != NULL ? (intptr_t)&h{at} : 0")
            self.after.append(f"if ({at} != NULL && STORED(h{at})) *{at} = {out}(uint32_t)h{at});")
            return
        if name.startswith("T_"):
            self.values.append("0")
            return
        n = self.length(argument)
        self.before.append(f"const int n{at} = {n};")
        self.before.append(f"uint32_t *h{at} = alloca(((size_t)n{at} + 1) * sizeof *h{at});")
        if name in _PAIRED:
            self.before.append(f"for (int i = 0; i < n{at}; i++) h{at}[i] = (uint32_t)UNSET;")
            self.after.append(
                f"for (int i = 0; i < n{at}; i++) if (STORED(h{at}[i])) {at}[i] = {out}h{at}[i]);"
            )
        else:
            self.before.append(
                f"for (int i = 0; i < n{at}; i++) h{at}[i] = (uint32_t){into}{at}[i]);"
            )
        self.values.append(f"{at} != NULL ? (intptr_t)h{at} : 0")
        if kind == "R":
            self.after.append(f"for (int i = 0; i < n{at}; i++) {at}[i] = {out}h{at}[i]);")

    def length(self, argument: Argument) -> str:
        at = self.names[argument.name]
        for name in ("max_datatypes", "count", "incount"):
            if name in self.names:
                n = self.scalar(self.names[name])
                return f"{at} != NULL && {n} > 0 ? (int){n} : 0"
        # All-to-all: a datatype for each process, if the block of these arguments is used.
        incoming = argument.name == "recvtypes"
        comm = f"{self.prefix}_in('C', {self.scalar(self.names['comm'])})"
        neighbors = "eighbor" in self.function.name
        count = f"peers({comm}, {int(neighbors)}, {int(incoming)}, SITE)"
        if incoming:
            return count
        return f"IS_IN_PLACE_{self.prefix}({self.names['sendbuf']}) ? 0 : {count}"

    def string(self, at: str, argument: Argument) -> None:
        name = self.function.name
        if len(argument.stars) + bool(argument.brackets) != 1:
            self.words(at, argument)
            return
        self.parameters.append(f"char *{at}")
        if self.fortran:
            self.lengths.append(f"size_t l{at}")
        if argument.constant:
            if self.fortran:
                self.before.append(f"char *t{at} = alloca(l{at} + 1);")
                form = "f_word" if argument.name in ("key", "value") else "f_text"
                self.values.append(f"(intptr_t){form}({at}, l{at}, t{at})")
            else:
                self.values.append(f"(intptr_t){at}")
            return
        limit = LIMITS.get(name)
        length = self.names.get("resultlen")
        if limit is None or name.startswith("T_"):
            self.values.append(f"(intptr_t){at}")
        elif self.fortran:
            size = f"MPICH_{limit} + 1"
            if name.startswith("Info_get") and "valuelen" in self.names:
                size = (
                    f"(size_t)(*{self.names['valuelen']} > 0 ? *{self.names['valuelen']} : 0) + 2"
                )
            elif "buflen" in self.names:
                size = f"(size_t)(*{self.names['buflen']} > 0 ? *{self.names['buflen']} : 0) + 2"
            self.before.append(f"char *t{at} = alloca({size}); t{at}[0] = 1;")
            self.values.append(f"(intptr_t)t{at}")
            self.after.append(f"f_store(t{at}, {at}, l{at}, {length or 'NULL'});")
        elif name.startswith("Info_get") and name != "Info_get_nthkey":
            self.values.append(f"(intptr_t){at}")
        else:
            self.before.append(
                f"char t{at}[OWN_{limit} < MPICH_{limit} ? MPICH_{limit} + 1 : 1]; t{at}[0] = 1;"
            )
            self.values.append(f"sizeof t{at} > 1 ? (intptr_t)t{at} : (intptr_t){at}")
            self.after.append(
                f"if (sizeof t{at} > 1) c_store(t{at}, {at}, OWN_{limit}, {length or 'NULL'});"
            )

    def words(self, at: str, argument: Argument) -> None:
        """Arrays of strings."""
        if not self.fortran:
            self.parameters.append(f"void *{at}")
            self.values.append(f"(intptr_t){at}")
            return
        self.parameters.append(f"char *{at}")
        self.lengths.append(f"size_t l{at}")
        several = f"*{self.names['count']}" if "count" in self.names else "1"
        form = {"array_of_commands": 1, "array_of_argv": 2}.get(argument.name, 0)
        self.before.append(f"void *w{at} = f_words({at}, l{at}, {several}, {form});")
        self.values.append(f"(intptr_t)w{at}")
        self.after.append(f"free(w{at});")

    def pointer(self, at: str, argument: Argument) -> None:
        name, function = argument.name, self.function.name
        wide = argument.type in ("N", "D") and self.function.wide
        role = ROLES.get(name)
        if name == "status" and function == "Topo_test":
            role = "topology"
        if name == "rank" and function.startswith("Group"):
            role = None
        old = self.fortran and self.old
        if argument.type == "int" and argument.stars == "*" and not argument.brackets and role:
            self.parameters.append(f"int *{at}")
            start = f"in_{role}(*{at})" if function.endswith("free_keyval") else "UNSET_INTEGER"
            if function == "Keyval_free":
                start = f"in_{role}(*{at})"
            self.before.append(f"int o{at} = {start};")
            self.values.append(f"{at} != NULL ? (intptr_t)&o{at} : 0")
            self.after.append(
                f"if ({at} != NULL && o{at} != UNSET_INTEGER) *{at} = out_{role}(o{at});"
            )
        elif name in ARRAYS:
            role, count = ARRAYS[name]
            n = self.scalar(self.names[count])
            self.parameters.append(f"int *{at}")
            self.before.append(
                f"int *r{at} = alloca(((size_t)({n} > 0 ? {n} : 0) + 1) * sizeof *r{at});"
            )
            self.values.append(f"(intptr_t)r{at}")
            if argument.constant:
                self.before.append(f"for (int i = 0; i < {n}; i++) r{at}[i] = in_{role}({at}[i]);")
            else:
                self.before.append(f"for (int i = 0; i < {n}; i++) r{at}[i] = UNSET_INTEGER;")
                self.after.append(
                    f"for (int i = 0; i < {n}; i++) if (r{at}[i] != UNSET_INTEGER) "
                    f"{at}[i] = out_{role}(r{at}[i]);"
                )
        elif name == "array_of_errcodes":
            self.parameters.append(f"int *{at}")
            # An error of a start is one of the call, so all codes are SUCCESS.
            self.values.append(f"(intptr_t)ERRCODES_{self.prefix}({at})")
        elif name in WEIGHTS:
            self.parameters.append(f"int *{at}")
            self.values.append(f"{self.prefix}_weights({at})")
        elif name in BUFFERS and argument.type == "void":
            self.parameters.append(f"void *{at}")
            self.values.append(f"{self.prefix}_buffer({at})")
        elif name == "attribute_val" and function in GET_ATTRIBUTES:
            self.parameters.append(f"void *{at}")
            key, flag = (self.names[each] for each in (self.keyval, "flag"))
            self.before.append(f"void *v{at} = NULL; *(int *){flag} = 0;")
            self.values.append(f"(intptr_t)&v{at}")
            form = "f_attribute_old" if old else f"{self.prefix}_attribute"
            self.after.append(
                f"if (*(int *){flag}) {form}({at}, in_keyval({self.scalar(key)}), v{at});"
            )
        elif name in ("attribute_val", "extra_state") and self.fortran:
            self.parameters.append(f"{'int' if old else 'long'} *{at}")
            self.values.append(f"(long long)*{at}")
        elif name == "buffer_addr":
            self.parameters.append(f"void *{at}")
            self.before.append(f"long long b{at} = UNSET;")
            self.values.append(f"(intptr_t)&b{at}")
            if not self.fortran:
                self.after.append(
                    f"if (b{at} != UNSET) *(void **){at} = (void *)out_buffer(b{at});"
                )
        elif old and argument.type == "Aint":
            self.parameters.append(f"int *{at}")
            if argument.brackets:
                n = f"*{self.names['count']}"
                self.before.append(
                    f"long *r{at} = alloca(((size_t)({n} > 0 ? {n} : 0) + 1) * sizeof *r{at});"
                )
                self.before.append(f"for (int i = 0; i < {n}; i++) r{at}[i] = {at}[i];")
                self.values.append(f"(intptr_t)r{at}")
            else:
                self.before.append(f"long r{at} = UNSET;")
                self.values.append(f"(intptr_t)&r{at}")
                self.after.append(f"if (r{at} != UNSET) *{at} = (int)r{at};")
        elif (
            self.fortran
            and name in ("indx", "array_of_indices")
            and "request" in str([each.type.lower() for each in self.function.arguments])
        ):
            self.parameters.append(f"int *{at}")
            if argument.brackets:
                n = f"*{self.names['outcount']}"
                self.before.append(f"{n} = 0;")
                self.values.append(f"(intptr_t){at}")
                self.after.append(f"for (int i = 0; i < {n}; i++) {at}[i]++;")
            else:
                self.before.append(f"int o{at} = UNSET_INTEGER;")
                self.values.append(f"(intptr_t)&o{at}")
                self.after.append(
                    f"if (o{at} != UNSET_INTEGER) *{at} = o{at} == UNDEFINED ? o{at} : o{at} + 1;"
                )
        else:
            self.parameters.append(
                f"{'long long' if wide else 'int' if argument.type == 'int' else 'void'} *{at}"
            )
            self.values.append(f"(intptr_t){at}")

    @property
    def keyval(self) -> str:
        return str(next(each for each in self.names if each.endswith("keyval")))

    # The text.

    @property
    def has_result(self) -> bool:
        return not (self.fortran and self.function.name == "Pcontrol")

    def body(self) -> list[str]:
        function = self.function
        before, after = list(self.before), list(self.after)
        if function.name in _PAIRED:
            types = self.names["datatype"]
            integers = self.names["array_of_integers"]
            after.append(
                f"contents_out({self.prefix}_in('D', {self.scalar(types)}), {integers}, SITE);"
            )
        lines = [f"    {line}" for line in before]
        lines.append(f"    const long long values[] = {{{', '.join([*self.values, '0'])}}};")
        result = "const long long result = " if self.has_result else ""
        lines.append(f"    {result}core->call({self.number}, values, SITE);")
        lines += [f"    {line}" for line in after]
        return lines

    def c(self) -> str:
        name, result = self.function.name, self.function.result
        kind = {"Aint": "long", "double": "double", "Fint": "int"}.get(result, "int")
        if result in HANDLES:
            kind = "HANDLE"
        head = f"{kind} PMPI_{name}({', '.join(self.parameters) or 'void'})"
        alias = head.replace("PMPI_", "MPI_", 1)
        if _CONVERSIONS.fullmatch(name):
            body = [f"    return {_conversion(name)};"]
        elif kind == "double":
            body = [f"    return core->real({self.number}, (const long long[]){{0}}, SITE);"]
        else:
            body = [
                *self.body(),
                f"    return {'result' if kind == 'long' else 'out_error((int)result)'};",
            ]
        return "\n".join([
            f"EXPORT {head} {{", *body, "}",
            f'EXPORT {alias} __attribute__((weak, alias("PMPI_{name}")));',
        ])  # fmt: skip

    def f(self) -> str:
        name = self.function.name.lower()
        result = self.function.result
        parameters = list(self.parameters)
        has_error = result == "int" and self.has_result
        if has_error:
            parameters.append("int *ierror")
        parameters += self.lengths
        kind = {"Aint": "long", "double": "double"}.get(result, "void")
        head = f"{kind} pmpi_{name}_({', '.join(parameters) or 'void'})"
        if kind == "double":
            body = [f"    return core->real({self.number}, (const long long[]){{0}}, SITE);"]
        else:
            body = self.body()
            if kind == "long":
                body.append("    return result;")
            elif has_error:
                body.append("    if (ierror != NULL) *ierror = out_error((int)result);")
        lines = [f"EXPORT {head} {{", *body, "}"]
        for alias in (
            f"mpi_{name}_",
            f"mpi_{name}__",
            f"pmpi_{name}__",
            f"mpi_{name}_f08_",
            f"pmpi_{name}_f08_",
        ):
            other = head.replace(f"pmpi_{name}_(", f"{alias}(", 1)
            lines.append(f'EXPORT {other} __attribute__((weak, alias("pmpi_{name}_")));')
        return "\n".join(lines)


def _conversion(name: str) -> str:
    prefix, _, form = name.rpartition("_")
    if prefix == "Status":
        return f"STATUS_{form}(a0, a1)"
    kind = HANDLES[{"Type": "Datatype"}.get(prefix, prefix)]
    if form in ("c2f", "toint"):
        return f"f_out('{kind}', (uint32_t)c_in('{kind}', a0))"
    return f"c_out('{kind}', (uint32_t)f_in('{kind}', a0))"


def _numbered() -> Iterator[tuple[int, Function]]:
    yield from enumerate(_table["functions"](), len(OTHERS))


def c_calls() -> str:
    """The entry points of C."""
    return "\n".join(EntryPointText(number, each, False).c() for number, each in _numbered()) + "\n"


def in_fortran(function: Function) -> bool:
    """Whether `mpif.h` has a function."""
    return not (
        function.wide
        or function.name.startswith(("T_", "Abi_"))
        or _CONVERSIONS.fullmatch(function.name)
        or function.name
        in (
            "Info_create_env",
            "Type_get_contents_c",
            "Type_get_envelope_c",
            "Op_create_c",
            "Register_datarep_c",
        )
    )


def fortran_calls() -> str:
    """The entry points of Fortran."""
    calls = (
        EntryPointText(number, each, True).f() for number, each in _numbered() if in_fortran(each)
    )
    return "\n".join(calls) + "\n"


def numbers() -> str:
    """The numbers of functions that the libraries call themselves, and the limits of MPICH."""
    lines = ["/* Written by pysmpi/abi/families.py. */"]
    wanted = (
        "Abort", "Comm_size", "Comm_remote_size", "Comm_test_inter", "Comm_rank", "Topo_test",
        "Cartdim_get", "Graph_neighbors_count", "Dist_graph_neighbors_count", "Type_get_envelope",
    )  # fmt: skip
    lines += [
        f"#define PSM_{each.name} {number}" for number, each in _numbered() if each.name in wanted
    ]
    for group, name, values in constants():
        if group == "length":
            lines.append(f"#define MPICH_{name} {values[0]}")
    return "\n".join(lines) + "\n"


def tables(column: int) -> str:
    """The constants of a binary interface: 1 of Open MPI, 2 of the standard."""
    lines: list[str] = []
    groups: dict[str, list[tuple[str, str]]] = {}
    handles: list[str] = []
    objects: set[str] = set()
    for group, name, values in constants():
        own = values[column]
        if own == "-":
            continue
        if group == "length":
            lines.append(f"#define OWN_{name} {own}")
        elif len(group) > 1:
            groups.setdefault(group, []).append((values[0], own))
        else:
            value = f"(void *){own}"
            fortran = own
            if column == 1:
                value = f"&{own}"
                fortran = values[3] if values[3] != "-" else "-1"
                if own not in objects:
                    lines.append(f"EXPORT psm_object {own} = {{PSM_MAGIC, {values[0]}u}};")
                objects.add(own)
            handles.append(f"    {{'{group}', {values[0]}u, (int){fortran}, \"{own}\", {value}}},")
    for group, pairs in groups.items():
        lines.append(f"static const psm_pair {group}_pairs[] = {{")
        lines += [f"    {{{mpich}, {own}}}," for mpich, own in pairs if mpich != "-"]
        lines.append("    {UNSET_INTEGER, 0},\n};")
    lines.append("static const psm_handle handles[] = {")
    lines += handles
    lines.append("};\n#define HANDLES_COUNT (int)(sizeof handles / sizeof *handles)")
    return "\n".join(lines) + "\n"


def sources() -> dict[str, str]:
    """The written files by their names."""
    return {
        "numbers.h": numbers(),
        "c_calls.h": c_calls(),
        "fortran_calls.h": fortran_calls(),
        "openmpi_tables.h": tables(1),
        "standard_tables.h": tables(2),
    }


def write(folder: str) -> None:
    """Write the files into a folder, which is made."""
    Path(folder).mkdir(exist_ok=True)
    for name, text in sources().items():
        Path(folder, name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    import sys

    write(sys.argv[1])
