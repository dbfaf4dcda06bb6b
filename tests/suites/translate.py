"""C programs that call MPI, in the regular style of suites, as Python programs with mpi4py.

Arrays, and scalars whose address reaches MPI, are arrays of numpy; other scalars are numbers of
Python. Handles are objects of mpi4py, arrays of handles are lists. Regions of OpenMP are threads.
Code without a counterpart raises Untranslated, with the reason.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from pycparser import CParser, c_ast

_CODES = {
    "char": "b", "signed char": "b", "unsigned char": "B", "short": "h", "unsigned short": "H",
    "int": "i", "unsigned": "I", "unsigned int": "I", "long": "l",
    "unsigned long": "L", "long long": "q", "unsigned long long": "Q", "float": "f", "double": "d",
    "long double": "g",
    "long int": "l", "long unsigned int": "L", "short int": "h", "unsigned long int": "L",
    "_Bool": "?", "bool": "?", "size_t": "L", "ssize_t": "l", "int8_t": "b", "uint8_t": "B",
    "int16_t": "h", "uint16_t": "H", "int32_t": "i", "uint32_t": "I", "int64_t": "l",
    "uint64_t": "L", "intptr_t": "l", "uintptr_t": "L", "MPI_Aint": "l", "MPI_Offset": "l",
    "MPI_Count": "l", "long long int": "q", "mtest_mem_type_e": "i",
}  # fmt: skip
_SIZES = {
    "b": 1, "B": 1, "?": 1, "h": 2, "H": 2, "i": 4, "I": 4, "f": 4, "l": 8, "L": 8, "q": 8, "Q":
    8, "d": 8, "g": 16,
}  # fmt: skip
_NULLS = {
    "MPI_Comm": "MPI.COMM_NULL", "MPI_Request": "MPI.REQUEST_NULL", "MPI_Win": "MPI.WIN_NULL",
    "MPI_Datatype": "MPI.DATATYPE_NULL", "MPI_Op": "MPI.OP_NULL", "MPI_Group": "MPI.GROUP_NULL",
    "MPI_Info": "MPI.INFO_NULL", "MPI_Message": "MPI.MESSAGE_NULL", "MPI_Status":
    "MPI.Status()", "MPI_Errhandler": "MPI.ERRHANDLER_NULL", "omp_lock_t": "None",
    "MPI_File": "MPI.FILE_NULL", "MTEST_THREAD_LOCK_TYPE": "None", "MTestArgList": "None",
    "pthread_mutex_t": "None",
}  # fmt: skip
_NAMES = {
    "MPI_STATUS_IGNORE": "None", "MPI_STATUSES_IGNORE": "None", "NULL": "None", "true": "True",
    "false": "False", "EXIT_FAILURE": "1", "EXIT_SUCCESS": "0", "stdout": "sys.stdout",
    "stderr": "sys.stderr", "INT_MAX": "2147483647", "INT_MIN": "-2147483648", "RAND_MAX":
    "32767", "MPI_INTEGER": "MPI.INTEGER", "__LINE__": "0", "MPI_MAX_OBJECT_NAME": "128",
    "MTEST_THREAD_RETVAL_IGN": "None", "CHAR_MAX": "127", "MPI_MAX_PORT_NAME": "256",
    "MPI_UNWEIGHTED": "None", "MTEST_MEM_TYPE__UNREGISTERED_HOST": "1",
}  # fmt: skip
_PRELUDE = "".join(
    f"typedef int {name};\n"
    for name in [
        *_NULLS,
        *(
            name
            for name in _CODES
            if name.isidentifier()
            and name not in "char short int unsigned long float double _Bool".split()
        ),
        "FILE",
        "va_list",
        "MPI_User_function",
        "MPI_Fint",
        "time_t",
        "mtest_mem_type_e",
        "pthread_t",
    ]
)
_PATTERNS = [
    int.from_bytes(bytes([each] * 4), "little", signed=True)
    for each in (0x0F, 0xF0, 0xAA, 0x55, 0x99, 0xCC, 0x00, 0xFF)
]
HEAD = """\
import random, sys, time
import numpy as np
import mpi4py
mpi4py.rc.initialize = mpi4py.rc.finalize = False
from mpi4py import MPI
"""


class Untranslated(Exception):
    """A construct without a counterpart in Python, or that is not known here."""


class Type(NamedTuple):
    """A type of C: a `number` with numpy's code, a `handle`, a `pointer`, `array`, `struct`."""

    kind: str
    name: str = ""
    of: Any = None
    dim: Any = None


class Variable(NamedTuple):
    """A name in Python, its type, and whether the scalar is an array or list of one element."""

    name: str
    type: Type
    cell: bool


class Call(NamedTuple):
    """Parameters with their kinds, and the call of mpi4py."""

    parameters: list[tuple[str, str]]
    text: str


def _calls() -> dict[str, Call]:
    found = {}
    for line in Path(__file__).with_name("calls.txt").read_text().splitlines():
        if line.startswith("#"):
            continue
        name, rest = line.split(":", 1)
        words, text = rest.split(" : ", 1) if " : " in rest else ("", rest.strip(" :"))
        kinds = [(w[0], w[1:]) if w[0] in "*@#&" else ("", w) for w in words.split()]
        found["MPI_" + name] = Call(kinds, text.strip())
    for name, call in [*found.items()]:
        if name.startswith("MPI_Neighbor_"):
            made = f"{{r}} = {call.text.replace('.Neigh', '.Ineigh')}"
            name = name.replace("MPI_N", "MPI_In")
            call = found[name] = Call([*call.parameters, ("*", "r")], made)
        if re.fullmatch(
            r"MPI_I(barrier|bcast|.*gather.*|.*scatter.*|.*alltoall.*|.*reduce.*|.*scan)", name
        ):
            blocking = name[5:].capitalize()
            text = call.text[:-1].replace(f".I{name[5:]}(", f".{blocking}_init(")
            if name != "MPI_Ibarrier":
                text += ", "
            parameters = [*call.parameters[:-1], ("", "info"), call.parameters[-1]]
            found[f"MPI_{blocking}_init"] = Call(parameters, text + "info={info})")
    return found


CALLS = _calls()
INT, FLOAT = Type("number", "i"), Type("number", "d")


def preprocess(path: Path, small: int = 0) -> str:
    """The text after the preprocessor, with empty headers of the system.

    Macros for numbers above `small` are this number, if it is not 0.
    """
    source = path.read_text(errors="replace")
    if small:
        source = re.sub(
            r"^(\s*#define \w+ +)\(?(\d+)\)?$",
            lambda m: m[1] + str(min(small, int(m[2]))),
            source,
            flags=re.M,
        )
    with tempfile.TemporaryDirectory() as place:
        for file in [
            path,
            *path.parent.glob("*.h"),
            *path.parent.parent.glob("*.h"),
            *path.parent.parent.parent.glob("*.h"),
            *path.parents[3].glob("*.h"),
        ]:
            for name in re.findall(
                r'#\s*include\s*[<"]([^>"]+)[>"]', file.read_text(errors="replace")
            ):
                if name != "nondeterminism.h":
                    header = Path(place) / name
                    header.parent.mkdir(parents=True, exist_ok=True)
                    header.write_text("")
        text = _PRELUDE + f'# 1 "{path}"\n' + re.sub(r'"([^"\n]*)"\s*PRI\w+', r'"\1d"', source)
        done = subprocess.run(
            [
                "cpp",
                "-nostdinc",
                "-fopenmp",
                "-I",
                place,
                "-I",
                str(path.parent),
                "-I",
                str(path.parent.parent),
                "-I",
                str(path.parents[2]),
                "-I",
                str(path.parents[3]),
                "-DMTEST_HAVE_MIN_MPI_VERSION(a,b)=1",
                "-DMTEST_THREAD_RETURN_TYPE=void *",
                "-DMTEST_THREAD_RETURN_EXPRESSION=return NULL",
                "-DMTEST_COLLECTIVE_IN_THREADS",
                "-DVERBOSE=0",
                '-DMPI_AINT_FMT_DEC_SPEC="%d"',
                "-DSQUELCH(x)=x",
                "-",
            ],
            input=text,
            capture_output=True,
            text=True,
        )
    if done.returncode:
        raise Untranslated(f"preprocessor: {done.stderr.strip().splitlines()[0]}")
    return re.sub(
        r"__attribute__\s*\(\(.*?\)\)|__restrict|\brestrict\b|__extension__", "", done.stdout
    )


class Translator:
    """Translates one program."""

    def __init__(self, path: Path, small: int = 0) -> None:
        self.path = path
        self.small = small
        self.out: list[tuple[str, int]] = []
        self.depth = 0
        self.line = 0
        self.scopes: list[dict[str, Variable]] = [{}]
        self.typedefs: dict[str, Any] = {}
        self.structs: dict[str, dict[str, Type]] = {}
        self.functions: dict[str, list[Type]] = {}
        self.results: dict[str, Type] = {}
        self.pre: list[str] = []
        self.post: list[str] = []
        self.steps: list[list[str]] = []
        self.frames: list[dict[str, set[str]]] = []
        self.used: set[str] = set()
        self.cells: set[str] = set()
        self.count = 0

    def translate(self) -> tuple[str, list[int]]:
        """The program in Python, and for each of its lines the line in C."""
        text = preprocess(self.path, self.small)
        try:
            tree = CParser().parse(text, str(self.path))
        except Exception as error:
            raise Untranslated(f"syntax: {error}") from None
        own = {
            "has_error_manifested",
            "fill_message_buffer",
            "has_buffer_expected_content",
            "us_sleep",
        }
        main = False
        for node in tree.ext:
            if isinstance(node, c_ast.FuncDef) and node.decl.name in own:
                continue
            self.at(node)
            if isinstance(node, c_ast.Typedef):
                if not (isinstance(node.type, c_ast.TypeDecl) and node.name in _NULLS | _CODES):
                    self.typedefs[node.name] = self.type(node.type)
            elif isinstance(node, c_ast.FuncDef):
                try:
                    self.function(node)
                except KeyError as error:
                    raise Untranslated(f"struct {error}") from None
                main |= node.decl.name == "main"
            elif isinstance(node, c_ast.Decl):
                if isinstance(node.type, c_ast.FuncDecl):
                    self.declared(node.name, node.type)
                else:
                    self.declare(node)
        if not main and "run" not in self.functions:
            raise Untranslated("no main")
        body = "\n".join(line for line, _ in self.out)
        head = HEAD
        if "omp." in body:
            head += "from tests.suites import openmp as omp\n"
        if re.search(r"\bc\.", body):
            head += "from tests.suites import functions as c\n"
        if "next(communicators" in body:
            head += "communicators = iter([MPI.COMM_WORLD])\n"
        if "next(halves" in body:
            head += "halves = c.intercommunicators(2)\n"
        if "operation(" in body:
            head += (
                "def operation(function, one, other):\n    return lambda a, b, t: function("
                "np.frombuffer(a, one), np.frombuffer(b, other), [len(b) // t.extent], [t])\n"
            )
        last = "sys.exit(main(len(sys.argv), sys.argv))"
        if not main:
            last = "MPI.Init(); errors = run(''); MPI.Finalize(); assert not errors"
        lines = [0] * head.count("\n") + [line for _, line in self.out] + [0]
        return f"{head}{body}\n{last}\n", lines

    # Types

    def type(self, node: Any) -> Type:
        if isinstance(node, (c_ast.Decl, c_ast.Typename)):
            return self.type(node.type)
        if isinstance(node, c_ast.PtrDecl):
            return Type("pointer", of=self.type(node.type))
        if isinstance(node, c_ast.ArrayDecl):
            return Type("array", of=self.type(node.type), dim=node.dim)
        if isinstance(node, c_ast.FuncDecl):
            return Type("function", of=self.type(node.type))
        if isinstance(node, c_ast.TypeDecl):
            return self.type(node.type)
        if isinstance(node, c_ast.Enum):
            for i, each in enumerate(node.values.enumerators if node.values else []):
                value = self.expr(each.value) if each.value else str(i)
                self.scopes[0][each.name] = Variable(value, INT, False)
            return INT
        if isinstance(node, c_ast.Struct):
            name = node.name or f"anonymous{id(node)}"
            if node.decls:
                self.structs[name] = {each.name: self.type(each) for each in node.decls}
            return Type("struct", name)
        if isinstance(node, c_ast.IdentifierType):
            name = " ".join(each for each in node.names if each not in ("const", "static"))
            if name in self.typedefs:
                return self.typedefs[name]
            if name == "void":
                return Type("void")
            if name == "MPI_User_function":
                return Type("function")
            if name in _NULLS:
                return Type("handle", name)
            if name in _CODES:
                return Type("number", _CODES[name])
            return Type("other", name)
        raise Untranslated(f"type {type(node).__name__}")

    def size(self, kind: Type) -> str:
        """`sizeof`."""
        if kind.kind == "number":
            return str(_SIZES[kind.name])
        if kind.kind == "array":
            return f"{self.atom(kind.dim)} * {self.size(kind.of)}"
        if kind.kind == "struct":
            return f"{self.dtype(kind)}.itemsize"
        return "8"

    def dtype(self, kind: Type) -> str:
        """The element type in numpy of a number, a struct, or an array of them."""
        if kind.kind == "number":
            return f'"{kind.name}"'
        if kind.kind == "array":
            return self.dtype(kind.of)
        if kind.kind == "void":
            return '"B"'
        if kind.kind == "struct":
            fields = []
            for name, each in self.structs[kind.name].items():
                dims = self.dims(each)
                if each.kind not in ("number", "array", "struct"):
                    raise Untranslated("a struct with pointers or handles")
                fields.append(
                    f'("{name}", {self.dtype(each)}' + (f", ({', '.join(dims)},))" if dims else ")")
                )
            return f"np.dtype([{', '.join(fields)}], align=True)"
        raise Untranslated(f"memory of {kind.kind} {kind.name}")

    def dims(self, kind: Type) -> list[str]:
        found = []
        while kind.kind == "array":
            if kind.dim is None:
                raise Untranslated("an array without a dimension")
            found.append(self.expr(kind.dim))
            kind = kind.of
        return found

    def listed(self, kind: Type) -> bool:
        """Whether elements of this type are in a list."""
        while kind.kind == "array":
            kind = kind.of
        return kind.kind in ("handle", "pointer", "other", "function")

    # Output

    def at(self, node: Any) -> None:
        if node is not None and node.coord is not None and str(node.coord.file) == str(self.path):
            self.line = node.coord.line

    def emit(self, text: str) -> None:
        for part in text.split("\n"):
            self.out.append(("    " * self.depth + part, self.line))

    def flush(self, lines: list[str]) -> None:
        for each in lines:
            self.emit(each)
        lines.clear()

    def assigned(self, target: str) -> None:
        for name in target.split(", "):
            if name.isidentifier():
                for frame in self.frames:
                    frame["assigned"].add(name)

    # Names

    def find(self, name: str) -> Variable | None:
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        return None

    def new(self, name: str, kind: Type, cell: bool) -> Variable:
        chosen = name
        if chosen in (
            "None",
            "in",
            "is",
            "from",
            "global",
            "lambda",
            "print",
            "list",
            "len",
            "pass",
            "np",
            "sys",
            "time",
            "def",
            "not",
            "or",
            "and",
            "sum",
            "omp",
            "MPI",
            "random",
            "max",
            "min",
            "range",
            "int",
            "float",
            "main",
            "del",
            "as",
            "with",
            "try",
            "c",
            "halves",
            "next",
            "iter",
            "bool",
            "bytes",
            "communicators",
            "operation",
        ):
            chosen += "_"
        visible = {each.name for scope in self.scopes for each in scope.values()}
        while chosen in visible and len(self.scopes) > 1:
            chosen += "_"
        found = self.scopes[-1][name] = Variable(chosen, kind, cell)
        for frame in self.frames:
            frame["declared"].add(chosen)
        return found

    # Declarations

    def initial(self, kind: Type, value: Any) -> str:
        """The right side of a declaration."""
        if kind.kind == "array":
            items = value.exprs if isinstance(value, c_ast.InitList) else None
            if kind.dim is None:
                length = len(items) if items is not None else None
                if isinstance(value, c_ast.Constant):
                    return f"np.array(list(b{value.value}) + [0], {self.dtype(kind)})"
                if length is None:
                    raise Untranslated("an array without a dimension")
                kind = kind._replace(dim=c_ast.Constant("int", str(length)))
            if self.listed(kind):
                if items is not None:
                    return f"[{', '.join(self.value(each, kind.of) for each in items)}]"
                return f"[{self.initial(kind.of, None)} for _ in range({self.expr(kind.dim)})]"
            shape = ", ".join(self.dims(kind))
            zero = (
                f"np.zeros(({shape},), {self.dtype(kind)})"
                if "," in shape
                else (f"np.zeros({shape}, {self.dtype(kind)})")
            )
            if isinstance(value, c_ast.Constant):
                text = f"list(b{value.value}) + [0] * ({shape})"
                zero = f"np.array(({text})[:{shape}], {self.dtype(kind)})"
            elif items and not all(getattr(each, "value", "") == "0" for each in items):
                if any(isinstance(each, c_ast.NamedInitializer) for each in items):
                    raise Untranslated("designators")
                texts = [self.items(each) for each in items]
                if len(kind_dims := self.dims(kind)) == 1 and kind_dims[0] != str(len(items)):
                    text = f"[{', '.join(texts)}] + [0] * ({shape})"
                    return f"np.array(({text})[:{shape}], {self.dtype(kind)})"
                return f"np.array([{', '.join(texts)}], {self.dtype(kind)})"
            return zero
        if kind.kind == "struct":
            if value is None:
                return f"np.zeros(1, {self.dtype(kind)})"
            if isinstance(value, c_ast.InitList):
                if all(getattr(each, "value", "") == "0" for each in value.exprs):
                    return f"np.zeros(1, {self.dtype(kind)})"
                text = ", ".join(self.items(each) for each in value.exprs)
                return f"np.array([({text},)], {self.dtype(kind)})"
            return f"{self.memory(value)}.copy()"
        if value is not None:
            return self.value(value, kind)
        if kind.kind == "number":
            return "0.0" if kind.name in "fdg" else "0"
        if kind.kind == "handle":
            return _NULLS[kind.name]
        return "None"

    def items(self, node: Any) -> str:
        if isinstance(node, c_ast.InitList):
            return f"[{', '.join(self.items(each) for each in node.exprs)}]"
        return self.expr(node)

    def value(self, node: Any, kind: Type) -> str:
        """An expression as a value of a type."""
        if kind.kind in ("pointer", "array"):
            return self.memory(node, kind.of)
        if isinstance(node, c_ast.InitList):
            return self.value(node.exprs[0], kind)
        text = self.expr(node)
        if kind.kind == "handle" and text == "None":
            return _NULLS[kind.name]
        if (
            kind.kind == "number"
            and kind.name not in "fdg?"
            and self.typeof(node).name in tuple("fdg")
        ):
            return f"int({text})"
        return text

    def declare(self, node: Any) -> None:
        kind = self.type(node.type)
        if node.name is None:
            return
        if kind.kind == "function":
            return
        init = node.init
        if kind.kind == "array" and kind.dim is None and isinstance(init, c_ast.InitList):
            kind = kind._replace(dim=c_ast.Constant("int", str(len(init.exprs))))
        cell = node.name in self.cells and kind.kind in ("number", "handle", "pointer")
        text = self.initial(kind, init)
        made = self.new(node.name, kind, cell)
        if cell:
            text = f'np.array([{text}], "{kind.name}")' if kind.kind == "number" else f"[{text}]"
        self.flush(self.pre)
        self.assigned(made.name)
        self.emit(f"{made.name} = {text}")
        self.flush(self.post)

    def declared(self, name: str, node: Any) -> None:
        parameters = node.args.params if node.args else []
        self.functions[name] = [
            self.type(each.type)
            for each in parameters
            if not isinstance(each, c_ast.EllipsisParam) and self.type(each.type).kind != "void"
        ]
        self.results[name] = self.type(node.type)

    def function(self, node: Any) -> None:
        name = node.decl.name
        self.declared(name, node.decl.type)
        self.cells = _Cells(node.body, self.functions).found
        self.scopes.append({})
        self.frames.append({"declared": set(), "assigned": set()})
        parameters, boxed = [], []
        for each in node.decl.type.args.params if node.decl.type.args else []:
            kind = (
                self.type(each.type) if not isinstance(each, c_ast.EllipsisParam) else Type("void")
            )
            if kind.kind == "void":
                continue
            cell = each.name in self.cells and kind.kind in ("number", "handle")
            made = self.new(each.name, kind, cell)
            parameters.append(made.name)
            if cell:
                boxed.append(
                    f'{made.name} = np.array([{made.name}], "{kind.name}")'
                    if kind.kind == "number"
                    else f"{made.name} = [{made.name}]"
                )
        if name == "main":
            parameters = ["argc", "argv"]
            self.scopes[-1].setdefault("argc", Variable("argc", INT, False))
            self.scopes[-1].setdefault(
                "argv", Variable("argv", Type("pointer", of=Type("pointer")), False)
            )
        self.emit(f"def {name}({', '.join(parameters)}):")
        at = len(self.out)
        self.depth += 1
        for each in boxed:
            self.emit(each)
        self.statements(node.body.block_items or [])
        frame = self.frames.pop()
        names = {each.name for each in self.scopes[0].values()}
        shared = sorted((frame["assigned"] - frame["declared"]) & names)
        self.out[at:at] = [(f"    global {', '.join(shared)}", 0)] if shared else []
        if len(self.out) == at:
            self.emit("pass")
        self.depth -= 1
        self.scopes.pop()
        self.cells = set()

    # Statements

    def statements(self, nodes: list[Any]) -> None:
        labels = [i for i, node in enumerate(nodes) if isinstance(node, c_ast.Label)]
        if labels:
            return self.labelled(nodes, labels[-1])
        position = 0
        while position < len(nodes):
            node = nodes[position]
            self.at(node)
            if isinstance(node, c_ast.Pragma):
                words = node.string.split("//")[0].strip()
                if words.startswith("omp"):
                    words = words[3:].strip()
                    if re.match(r"(barrier|taskwait|flush|taskyield)\b", words):
                        self.emit(
                            {"b": "omp.barrier()", "t": "omp.taskwait()", "f": "pass"}[words[0]]
                        )
                    else:
                        position += 1
                        self.region(words, nodes[position])
            else:
                self.statement(node)
            position += 1

    def labelled(self, nodes: list[Any], at: int) -> None:
        """Statements to whose last label others jump forward."""
        label = nodes[at]
        if _Jumps(nodes[at:], label.name).found:
            raise Untranslated("goto that goes back")
        self.emit("try:")
        self.depth += 1
        before = len(self.out)
        self.statements(nodes[:at])
        if len(self.out) == before:
            self.emit("pass")
        self.depth -= 1
        self.emit(f"except c.Jump as jump:\n    if jump.args != ('{label.name}',):\n        raise")
        self.statements([label.stmt, *nodes[at + 1 :]])

    def block(self, node: Any) -> None:
        """A statement one level deeper, in a scope of its own."""
        self.depth += 1
        self.scopes.append({})
        before = len(self.out)
        if isinstance(node, c_ast.Compound):
            self.statements(node.block_items or [])
        elif node is not None:
            self.statements([node])
        if len(self.out) == before:
            self.emit("pass")
        self.scopes.pop()
        self.depth -= 1

    def statement(self, node: Any) -> None:
        self.at(node)
        kind = type(node).__name__
        if kind == "Decl":
            self.declare(node)
        elif kind == "DeclList":
            for each in node.decls:
                self.declare(each)
        elif kind == "Compound":
            self.scopes.append({})
            self.statements(node.block_items or [])
            self.scopes.pop()
        elif kind == "If":
            test = self.condition(node.cond)
            self.flush(self.pre)
            if self.post:
                raise Untranslated("a side effect in a condition")
            self.emit(f"if {test}:")
            self.block(node.iftrue)
            if node.iffalse is not None:
                self.emit("else:")
                self.block(node.iffalse)
        elif kind in ("While", "DoWhile", "For"):
            self.loop(node)
        elif kind == "Return":
            text = ""
            if node.expr is not None:
                text = (
                    self.memory(node.expr)
                    if self.typeof(node.expr).kind in ("pointer", "array")
                    else (self.expr(node.expr))
                )
            self.flush(self.pre)
            self.emit(f"return {text}".rstrip())
            self.post.clear()
        elif kind == "Continue":
            for each in self.steps[-1]:
                self.emit(each)
            self.emit("continue")
        elif kind == "Break":
            self.emit("break")
        elif kind == "EmptyStatement":
            pass
        elif kind == "Switch":
            self.switch(node)
        elif kind == "Goto":
            self.emit(f"raise c.Jump('{node.name}')")
        elif kind == "Pragma":
            self.statements([node])
        else:
            self.expression(node)

    def expression(self, node: Any) -> None:
        """An expression as a statement."""
        if isinstance(node, c_ast.ExprList):
            for each in node.exprs:
                self.expression(each)
            return
        if isinstance(node, c_ast.Cast):
            return self.expression(node.expr)
        text = self.expr(node, alone=True)
        self.flush(self.pre)
        if text and not re.fullmatch(r"[\w.\[\]]*", text):
            self.emit(text)
        self.flush(self.post)

    def loop(self, node: Any) -> None:
        self.scopes.append({})
        kind = type(node).__name__
        if kind == "For" and (counted := self.counted(node)):
            name, first, last = counted
            self.steps.append([])
            self.emit(
                f"for {name} in range({last})" + ":"
                if first == "0"
                else f"for {name} in range({first}, {last}):"
            )
            self.block(node.stmt)
            self.steps.pop()
            self.scopes.pop()
            return
        if kind == "For" and node.init is not None:
            self.statement(node.init)
        step: list[str] = []
        if kind == "For" and node.next is not None:
            saved, self.out, depth, self.depth = self.out, [], self.depth, 0
            self.expression(node.next)
            step = [line for line, _ in self.out]
            self.out, self.depth = saved, depth
        test = "True"
        if kind != "DoWhile" and node.cond is not None:
            test = self.condition(node.cond)
        leading, self.pre, trailing, self.post = self.pre, [], self.post, []
        if trailing:
            raise Untranslated("a side effect in a condition")
        self.steps.append(step)
        if leading or kind == "DoWhile":
            self.emit("while True:")
            self.depth += 1
            if leading:
                self.flush(leading)
                self.emit(f"if not ({test}):\n    break")
            self.depth -= 1
        else:
            self.emit(f"while {test}:")
        self.block(node.stmt)
        self.depth += 1
        self.line = node.coord.line
        for each in step:
            self.emit(each)
        if kind == "DoWhile":
            test = self.condition(node.cond)
            self.flush(self.pre)
            self.emit(f"if not ({test}):\n    break")
        self.depth -= 1
        self.steps.pop()
        self.scopes.pop()

    def counted(self, node: Any) -> tuple[str, str, str] | None:
        """The name and the bounds of `for (i = a; i < b; i++)` whose body does not assign `i`."""
        init, test, step = node.init, node.cond, node.next
        if isinstance(init, c_ast.DeclList) and len(init.decls) == 1:
            name, first = init.decls[0].name, init.decls[0].init
        elif isinstance(init, c_ast.Assignment) and isinstance(init.lvalue, c_ast.ID):
            return None
        else:
            return None
        if not (
            isinstance(test, c_ast.BinaryOp)
            and test.op in ("<", "<=")
            and isinstance(test.left, c_ast.ID)
            and test.left.name == name
            and isinstance(step, c_ast.UnaryOp)
            and step.op in ("++", "p++")
            and isinstance(step.expr, c_ast.ID)
            and step.expr.name == name
        ):
            return None
        if name in self.cells or _Assigns(node.stmt, name).found or first is None:
            return None
        low, high = self.expr(first), self.expr(test.right)
        if self.pre or self.post:
            return None
        made = self.new(name, INT, False)
        self.assigned(made.name)
        return made.name, low, f"{high} + 1" if test.op == "<=" else high

    def switch(self, node: Any) -> None:
        self.count += 1
        name = f"case{self.count}"
        self.emit(f"{name} = {self.expr(node.cond)}")
        word, values = "if", []
        for each in node.stmt.block_items or []:
            body = list(each.stmts or [])
            if isinstance(each, c_ast.Case):
                values.append(self.expr(each.expr))
                if not body:
                    continue
                self.emit(f"{word} {name} in ({', '.join(values)},):")
            else:
                self.emit("else:" if word == "elif" else "if True:")
            values = []
            if len(body) == 1 and isinstance(body[0], c_ast.Compound):
                body = list(body[0].block_items or [])
            if body and isinstance(body[-1], c_ast.Break):
                body.pop()
            self.block(c_ast.Compound(body))
            word = "elif"

    # OpenMP

    def region(self, words: str, node: Any) -> None:
        """A statement under a directive of OpenMP."""
        words, clauses = re.match(r"([a-z ]*?)((?:\s\w+\s*\(.*|\(.*|\snowait.*)?)$", words).groups()  # type: ignore[union-attr]
        words = words.strip()
        found = {
            name: re.split(r"\s*,\s*", inside.split(":")[-1].strip())
            for name, inside in re.findall(r"(\w+)\s*\(([^)]*)\)", clauses)
        }
        modes = dict(re.findall(r"(depend)\s*\(\s*(\w+)", clauses))
        self.count += 1
        mark = self.count
        waits = "nowait" not in clauses
        if words == "parallel for":
            self.threads(
                f"omp.parallel({found.get('num_threads', ['None'])[0]}, ",
                found,
                lambda: self.share(node, mark, False),
            )
        elif words == "parallel" or words == "parallel sections":
            number = found.get("num_threads", ["None"])[0]
            inner = (
                (lambda: self.region("sections", node))
                if words != "parallel"
                else (lambda: self.statements([node]))
            )
            self.threads(f"omp.parallel({number}, ", found, inner)
        elif words == "task":
            names = ", ".join(f'"{name}"' for name in found.get("depend", []))
            self.threads(
                f'omp.task([{names}], "{modes.get("depend", "")}", ',
                found,
                lambda: self.statements([node]),
            )
        elif words in ("for", "for ordered", "for ordered schedule"):
            self.share(node, mark, waits)
        elif words == "sections":
            for i, each in enumerate(_sections(node)):
                self.emit(f"if omp.section({i}):")
                self.block(each)
            if waits:
                self.emit("omp.barrier()")
        elif words == "single":
            self.emit(f"if omp.single({mark}):")
            self.block(node)
            if waits:
                self.emit("omp.barrier()")
        elif words in ("master", "masked"):
            self.emit("if omp.number() == 0:")
            self.block(node)
        elif words.startswith("atomic"):  # which orders nothing else
            self.emit("if True:")
            self.block(node)
        elif words == "critical":
            self.emit(f'with omp.critical("{clauses.strip(" ()")}"):')
            self.block(node)
        elif words == "ordered":
            self.emit("with omp.ordered():")
            self.block(node)
        else:
            raise Untranslated(f"omp {words}")

    def share(self, node: Any, mark: int, waits: bool) -> None:
        self.scopes.append({})
        counted = self.counted(node)
        if counted is None:
            raise Untranslated("a loop of omp for")
        name, first, last = counted
        self.steps.append([])
        self.emit(f"for {name} in omp.share({mark}, {first}, {last}):")
        self.block(node.stmt)
        if waits:
            self.emit("omp.barrier()")
        self.steps.pop()
        self.scopes.pop()

    def threads(self, start: str, clauses: dict[str, list[str]], body: Any) -> None:
        name = f"region{self.count}"
        copies = []
        hidden = {}
        for word in ("private", "firstprivate"):
            for each in clauses.get(word, []):
                variable = self.find(each)
                if variable is None:
                    raise Untranslated(f"{word}({each})")
                hidden[variable.name] = variable
                if word == "firstprivate":
                    text = f"{variable.name}.copy()" if variable.cell else variable.name
                    copies.append(f"{variable.name}={text}")
        self.emit(f"def {name}({', '.join(copies)}):")
        at = len(self.out)
        depth = self.depth
        self.depth += 1
        self.frames.append({"declared": set(hidden), "assigned": set()})
        self.scopes.append({})
        steps, self.steps = self.steps, []
        body()
        self.steps = steps
        self.scopes.pop()
        frame = self.frames.pop()
        shared = sorted(frame["assigned"] - frame["declared"])
        names = {each.name for each in self.scopes[0].values()}
        local = [each for each in shared if each not in names]
        both = [each for each in shared if each in names]
        inside = [
            ("    " * (depth + 1) + text, 0)
            for text in ([f"nonlocal {', '.join(local)}"] if local else [])
            + ([f"global {', '.join(both)}"] if both else [])
        ]
        self.out[at:at] = inside
        if len(self.out) == at + len(inside):
            self.emit("pass")
        self.depth -= 1
        self.emit(f"{start}{name})")

    # Expressions

    def atom(self, node: Any) -> str:
        text = self.expr(node)
        return text if re.fullmatch(r"[\w.]+(\[\w+\])?", text) else f"({text})"

    def condition(self, node: Any) -> str:
        kind = self.typeof(node)
        if kind.kind in ("pointer", "array"):
            return f"{self.memory(node)} is not None"
        return self.expr(node)

    def typeof(self, node: Any) -> Type:
        """The type of an expression, `other` if it is not known."""
        if isinstance(node, c_ast.Constant):
            if node.type == "string":
                return Type("pointer", of=Type("number", "b"))
            return FLOAT if node.type in ("float", "double") else INT
        if isinstance(node, c_ast.ID):
            variable = self.find(node.name)
            if variable is not None:
                return variable.type
            if node.name == "NULL":
                return Type("pointer", of=Type("void"))
            return Type("function") if node.name in self.functions else Type("other")
        if isinstance(node, c_ast.ArrayRef):
            return self.typeof(node.name).of or Type("other")
        if isinstance(node, c_ast.StructRef):
            base = self.typeof(node.name)
            base = base.of if base.kind in ("pointer", "array") else base
            if base.kind == "struct":
                return self.structs[base.name].get(node.field.name, Type("other"))
            return INT
        if isinstance(node, c_ast.UnaryOp):
            if node.op == "&":
                return Type("pointer", of=self.typeof(node.expr))
            if node.op == "*":
                return self.typeof(node.expr).of or Type("other")
            if node.op in ("sizeof", "!"):
                return INT
            return self.typeof(node.expr)
        if isinstance(node, c_ast.BinaryOp):
            one, other = self.typeof(node.left), self.typeof(node.right)
            if node.op in ("<", ">", "<=", ">=", "==", "!=", "&&", "||"):
                return INT
            for each in (one, other):
                if each.kind in ("pointer", "array"):
                    return Type("pointer", of=each.of)
            return (
                FLOAT
                if "number" == one.kind
                and one.name in "fdg"
                or ("number" == other.kind and other.name in "fdg")
                else INT
            )
        if isinstance(node, c_ast.Cast):
            return self.type(node.to_type)
        if isinstance(node, c_ast.TernaryOp):
            return self.typeof(node.iftrue)
        if isinstance(node, c_ast.FuncCall):
            name = getattr(node.name, "name", "")
            if name in ("malloc", "calloc", "realloc"):
                return Type("pointer", of=Type("void"))
            if name in self.results:
                return self.results[name]
            if name in ("MPI_Wtime", "MPI_Wtick", "sqrt", "fabs", "pow"):
                return FLOAT
            return INT
        return Type("other")

    def allocate(self, node: Any, of: Type) -> str | None:
        """The memory of a call of `malloc` or `calloc`."""
        name = getattr(node.name, "name", "")
        if name == "realloc":
            old, size = node.args.exprs
            made = self.allocate(c_ast.FuncCall(c_ast.ID("malloc"), c_ast.ExprList([size])), of)
            count = re.search(r"range\((.*)\)\]$|np\.zeros\((.*), ", made or "")
            if count is None:
                raise Untranslated("realloc")
            many = count[1] or count[2]
            return f"c.longer({self.memory(old)}, {many}, lambda n: {made})"
        if name not in ("malloc", "calloc"):
            return None
        arguments = node.args.exprs
        if name == "calloc":
            count = self.expr(arguments[0])
        else:
            count = ""
            given = arguments[0]
            if isinstance(given, c_ast.BinaryOp) and given.op == "*":
                for one, other in ((given.left, given.right), (given.right, given.left)):
                    if _is_sizeof(one) and self.size(self.sized(one)) == self.sizeof(of):
                        count = self.expr(other)
            elif _is_sizeof(given) and self.size(self.sized(given)) == self.sizeof(of):
                count = "1"
            if not count:
                count = f"({self.expr(given)}) // {self.sizeof(of)}"
        if self.listed(of):
            return f"[{self.initial(of, None)} for _ in range({count})]"
        return f"np.zeros({count}, {self.dtype(of)})"

    def sizeof(self, of: Type) -> str:
        return "1" if of.kind == "void" else self.size(of)

    def sized(self, node: Any) -> Type:
        return (
            self.type(node.expr)
            if isinstance(node.expr, c_ast.Typename)
            else self.typeof(node.expr)
        )

    def memory(self, node: Any, of: Type | None = None) -> str:
        """An expression of a pointer, as an array that begins there."""
        if isinstance(node, c_ast.Cast):
            kind = self.type(node.to_type)
            if kind.kind not in ("pointer", "array"):
                return self.memory(node.expr, of)
            if kind.of.kind in ("function", "other"):
                return self.memory(node.expr)
            if isinstance(node.expr, c_ast.FuncCall):
                made = self.allocate(
                    node.expr, of if of is not None and kind.of.kind == "void" else kind.of
                )
                if made is not None:
                    return made
            text = self.memory(node.expr)
            have = self.typeof(node.expr)
            if text in ("None", "MPI.BOTTOM", "MPI.IN_PLACE") or kind.of.kind == "void":
                return text
            if (
                have.of is not None
                and have.of.kind == kind.of.kind
                and have.of.name == kind.of.name
            ):
                return text
            if self.listed(kind.of):
                return text
            return f"{text}.view({self.dtype(kind.of)})"
        if isinstance(node, c_ast.Constant):
            if node.type == "string":
                return f"np.array(list(b{node.value}) + [0], 'b')"
            if node.value == "0":
                return "None"
            raise Untranslated("a number as an address")
        if isinstance(node, c_ast.ID):
            variable = self.find(node.name)
            if variable is not None:
                if variable.type.kind == "pointer" and variable.cell:
                    return f"{variable.name}[0]"
                if variable.type.kind in ("pointer", "array", "function"):
                    return variable.name
                raise Untranslated("a number as an address")
            return self.expr(node)
        if isinstance(node, c_ast.UnaryOp) and node.op == "&":
            return self.address(node.expr)
        if (
            isinstance(node, c_ast.UnaryOp)
            and node.op in ("p++", "++")
            and isinstance(node.expr, c_ast.ID)
        ):
            name = self.memory(node.expr)
            (self.post if node.op == "p++" else self.pre).append(f"{name} = {name}[1:]")
            self.assigned(name)
            return name
        if isinstance(node, c_ast.UnaryOp) and node.op == "*":
            inner = self.typeof(node.expr)
            if inner.of is not None and inner.of.kind in ("pointer", "array", "function"):
                text = self.memory(node.expr)
                return text if inner.of.kind == "function" else f"{text}[0]"
        if isinstance(node, c_ast.BinaryOp) and node.op in "+-":
            if node.op == "-":
                raise Untranslated("a difference of pointers")
            base, offset = node.left, node.right
            if self.typeof(base).kind not in ("pointer", "array"):
                base, offset = offset, base
            name = getattr(base, "name", "")
            if name == "MPI_BOTTOM":
                raise Untranslated("an offset from MPI_BOTTOM")
            return f"{self.memory(base)}[{self.expr(offset)}:]"
        if isinstance(node, c_ast.ArrayRef):
            return f"{self.memory(node.name)}[{self.expr(node.subscript)}]"
        if isinstance(node, c_ast.StructRef):
            return self.expr(node)
        if isinstance(node, c_ast.TernaryOp):
            one, other = self.memory(node.iftrue), self.memory(node.iffalse)
            return f"({one} if {self.condition(node.cond)} else {other})"
        if isinstance(node, c_ast.FuncCall):
            made = self.allocate(node, of if of is not None else Type("void"))
            return made if made is not None else self.expr(node)
        if isinstance(node, c_ast.Assignment):
            self.pre.append(self.expr(node, alone=True))
            return self.memory(node.lvalue)
        raise Untranslated(f"an address: {type(node).__name__}")

    def address(self, node: Any) -> str:
        """The memory that begins at an object."""
        if isinstance(node, c_ast.ID):
            variable = self.find(node.name)
            if variable is None:
                if node.name in self.functions:
                    return node.name
                raise Untranslated(f"&{node.name}")
            if variable.cell or variable.type.kind in ("array", "struct"):
                return variable.name
            if variable.type.kind == "handle":
                return f"[{variable.name}]"
            raise Untranslated(f"&{node.name} of a pointer")
        if isinstance(node, c_ast.ArrayRef):
            inner = self.typeof(node.name)
            if inner.of is not None and inner.of.kind == "array" and not self.listed(inner):
                if getattr(node.subscript, "value", "") == "0":
                    return self.memory(node.name)
                return f"{self.memory(node.name)}[{self.expr(node.subscript)}:]"
            text = self.memory(node.name)
            if getattr(node.subscript, "value", "") == "0":
                return text
            if isinstance(node.name, c_ast.ArrayRef) and text.endswith("]"):
                return f"{text[:-1]}, {self.expr(node.subscript)}:]"
            return f"{text}[{self.expr(node.subscript)}:]"
        if isinstance(node, c_ast.StructRef):
            base = self.typeof(node.name)
            base = base.of if base.kind in ("pointer", "array") and node.type == "->" else base
            if base.kind != "struct":
                raise Untranslated("the address of a member")
            whole = self.memory(node.name) if node.type == "->" else self.address(node.name)
            if next(iter(self.structs[base.name])) == node.field.name:
                return whole
            return f'{whole}["{node.field.name}"]'
        if isinstance(node, c_ast.UnaryOp) and node.op == "*":
            return self.memory(node.expr)
        raise Untranslated(f"the address of {type(node).__name__}")

    def target(self, node: Any) -> str:
        """An object that is assigned."""
        if isinstance(node, c_ast.ID):
            variable = self.find(node.name)
            if variable is None:
                raise Untranslated(f"unknown name {node.name}")
            return f"{variable.name}[0]" if variable.cell else variable.name
        return self.expr(node)

    def output(self, node: Any) -> str:
        """The object that a call gives through a pointer; `_` for none."""
        if isinstance(node, c_ast.Cast):
            return self.output(node.expr)
        if isinstance(node, c_ast.UnaryOp) and node.op == "&":
            text = self.target(node.expr)
        else:
            text = self.memory(node)
            if text == "None":
                return "_"
            text += "[0]"
        self.assigned(text)
        return text

    def handle(self, node: Any) -> str:
        """The object to which a pointer points."""
        if isinstance(node, c_ast.UnaryOp) and node.op == "&":
            return self.expr(node.expr)
        text = self.memory(node)
        return text if text == "None" else f"{text}[0]"

    def expr(self, node: Any, alone: bool = False) -> str:
        """An expression that is no pointer; `alone` if its value is not used."""
        method = getattr(self, f"expr_{type(node).__name__}", None)
        if method is None:
            raise Untranslated(f"expression {type(node).__name__}")
        return method(node, alone)

    def expr_Constant(self, node: Any, _: bool) -> str:
        if node.type == "char":
            return str(ord(eval(node.value)))
        if node.type == "string":
            return str(node.value)
        text = (
            node.value.rstrip("uUlL") if "x" in node.value.lower() else node.value.rstrip("uUlLfF")
        )
        return f"0o{text[1:]}" if re.fullmatch(r"0[0-7]+", text) else text

    def expr_ID(self, node: Any, _: bool) -> str:
        variable = self.find(node.name)
        if variable is not None:
            if variable.type.kind in ("pointer", "array"):
                return self.memory(node)
            return f"{variable.name}[0]" if variable.cell else variable.name
        if node.name in _NAMES:
            return _NAMES[node.name]
        if node.name.startswith("MPI_2"):
            return "MPI.TWO" + node.name[5:]
        if node.name.startswith("MPI_"):
            return "MPI." + node.name[4:]
        if node.name in self.functions:
            return node.name
        raise Untranslated(f"unknown name {node.name}")

    def expr_ArrayRef(self, node: Any, _: bool) -> str:
        base = node.name
        if getattr(base, "name", "") == "argv":
            return f"argv[{self.expr(node.subscript)}]"
        text = self.memory(base)
        if (
            isinstance(base, c_ast.ArrayRef)
            and text.endswith("]")
            and not self.listed(self.typeof(base))
        ):
            return f"{text[:-1]}, {self.expr(node.subscript)}]"
        return f"{text}[{self.expr(node.subscript)}]"

    def expr_StructRef(self, node: Any, _: bool) -> str:
        field = node.field.name
        if field.startswith("MPI_"):
            status = self.handle(node.name) if node.type == "->" else self.expr(node.name)
            word = {"MPI_SOURCE": "Get_source", "MPI_TAG": "Get_tag", "MPI_ERROR": "Get_error"}[
                field
            ]
            return f"{status}.{word}()"
        if node.type == "->":
            return f'{self.memory(node.name)}["{field}"][0]'
        if isinstance(node.name, c_ast.ArrayRef):
            return f'{self.memory(node.name.name)}["{field}"][{self.expr(node.name.subscript)}]'
        if isinstance(node.name, c_ast.StructRef):
            return f'{self.expr(node.name)}["{field}"]'
        return f'{self.address(node.name)}["{field}"][0]'

    def expr_UnaryOp(self, node: Any, alone: bool) -> str:
        if node.op == "sizeof":
            return (
                f"({self.size(self.sized(node))})"
                if "*" in self.size(self.sized(node))
                else (self.size(self.sized(node)))
            )
        if node.op == "&":
            return self.memory(node)
        if node.op == "*":
            inner = self.typeof(node.expr)
            if inner.of is not None and inner.of.kind == "function":
                return self.memory(node.expr)
            return f"{self.memory(node.expr)}[0]"
        if node.op == "!":
            if self.typeof(node.expr).kind in ("pointer", "array"):
                return f"{self.memory(node.expr)} is None"
            return f"not {self.atom(node.expr)}"
        if node.op in ("++", "--", "p++", "p--"):
            kind = self.typeof(node.expr)
            text = self.target(node.expr)
            self.assigned(text)
            sign = node.op.strip("p")[0]
            if kind.kind == "pointer":
                if sign == "-":
                    raise Untranslated("a pointer that goes back")
                change = f"{text} = {text}[1:]"
            else:
                change = f"{text} {sign}= 1"
            if alone:
                return change
            (self.post if node.op[0] == "p" else self.pre).append(change)
            return text
        return f"{node.op}{self.atom(node.expr)}"

    def expr_BinaryOp(self, node: Any, _: bool) -> str:
        one, other = self.typeof(node.left), self.typeof(node.right)
        pointers = [each.kind in ("pointer", "array") for each in (one, other)]
        if node.op in ("==", "!=") and any(pointers):
            texts = self.memory(node.left), self.memory(node.right)
            if "None" in texts:
                return f"{texts[0]} {'is' if node.op == '==' else 'is not'} {texts[1]}"
            return f"{'not ' * (node.op == '!=')}c.same({texts[0]}, {texts[1]})"
        if any(pointers) and node.op in "+-":
            return self.memory(node)
        left = (
            self.atom(node.left)
            if node.op not in ("&&", "||")
            else f"({self.condition(node.left)})"
        )
        before = len(self.pre), len(self.post)
        right = (
            self.atom(node.right)
            if node.op not in ("&&", "||")
            else f"({self.condition(node.right)})"
        )
        if node.op in ("&&", "||") and before != (len(self.pre), len(self.post)):
            self.count += 1
            name = f"test{self.count}"
            inner = [*self.pre[before[0] :], f"{name} = {right}", *self.post[before[1] :]]
            del self.pre[before[0] :], self.post[before[1] :]
            lines = [line for each in inner for line in each.split("\n")]
            self.pre.append(f"{name} = {left}")
            self.pre.append("\n    ".join([f"if {'not ' * (node.op == '||')}{name}:", *lines]))
            return name
        if node.op == "/":
            floating = any(each.kind == "number" and each.name in "fdg" for each in (one, other))
            return f"{left} / {right}" if floating else f"{left} // {right}"
        word = {"&&": "and", "||": "or"}.get(node.op, node.op)
        return f"{left} {word} {right}"

    def expr_TernaryOp(self, node: Any, _: bool) -> str:
        test = self.condition(node.cond)
        before = len(self.pre), len(self.post)
        one, other = self.expr(node.iftrue), self.expr(node.iffalse)
        if before != (len(self.pre), len(self.post)):
            raise Untranslated("a side effect that may not happen")
        return f"({one} if {test} else {other})"

    def expr_Cast(self, node: Any, _: bool) -> str:
        kind = self.type(node.to_type)
        if kind.kind in ("pointer", "array"):
            return self.memory(node)
        if self.typeof(node.expr).kind in ("pointer", "array") and kind.kind == "number":
            return f"MPI.Get_address({self.memory(node.expr)})"
        text = self.expr(node.expr)
        if kind.kind == "number":
            if kind.name in "fdg":
                return f"float({text})"
            if self.typeof(node.expr).name in tuple("fdg"):
                return f"int({text})"
        return text

    def expr_Assignment(self, node: Any, alone: bool) -> str:
        kind = self.typeof(node.lvalue)
        text = self.target(node.lvalue)
        if node.op == "=":
            if kind.kind == "struct":
                change = f"{self.address(node.lvalue)}[:1] = {self.address(node.rvalue)}[:1]"
            else:
                right = self.value(node.rvalue, kind)
                change = f"{text} = {right}"
                if text.endswith("()"):  # of a status
                    change = f"{text.replace('.Get_', '.Set_')[:-1]}{right})"
        elif kind.kind == "pointer":
            change = f"{text} = {text}[{self.expr(node.rvalue)}:]"
        elif node.op == "/=" and kind.name not in tuple("fdg"):
            change = f"{text} //= {self.expr(node.rvalue)}"
        else:
            change = f"{text} {node.op} {self.expr(node.rvalue)}"
        self.assigned(text)
        if alone:
            return change
        self.pre.append(change)
        return text

    def expr_ExprList(self, node: Any, _: bool) -> str:
        for each in node.exprs[:-1]:
            self.pre.append(self.expr(each, alone=True))
        return self.expr(node.exprs[-1])

    def expr_InitList(self, node: Any, _: bool) -> str:
        return self.items(node)

    def expr_FuncCall(self, node: Any, alone: bool) -> str:
        called = node.name
        while isinstance(called, c_ast.UnaryOp) and called.op == "*":
            called = called.expr
        name = getattr(called, "name", "")
        arguments = list(node.args.exprs) if node.args else []
        if isinstance(name, str) and name.startswith("MPI_"):
            return self.mpi(name, arguments, alone)
        if (
            isinstance(called, c_ast.ID)
            and name not in self.functions
            and hasattr(self, f"call_{name}")
        ):
            return getattr(self, f"call_{name}")(arguments)
        if name in self.functions:
            texts = [
                self.memory(each, kind.of) if kind.kind in ("pointer", "array") else self.expr(each)
                for each, kind in zip(arguments, self.functions[name], strict=False)
            ]
            return f"{name}({', '.join(texts)})"
        variable = self.find(name) if isinstance(name, str) else None
        if variable is not None and variable.type.kind in ("pointer", "function"):
            texts = [
                self.memory(each)
                if self.typeof(each).kind in ("pointer", "array")
                else self.expr(each)
                for each in arguments
            ]
            return f"{self.memory(called)}({', '.join(texts)})"
        raise Untranslated(f"function {name}")

    def mpi(self, name: str, arguments: list[Any], alone: bool) -> str:
        """A call of MPI."""
        special = getattr(self, "mpi_" + name[4:], None)
        if name in ("MPI_Wtime", "MPI_Wtick"):
            return f"MPI.{name[4:]}()"
        if name in ("MPI_Aint_add", "MPI_Aint_diff"):
            sign = "+" if name.endswith("add") else "-"
            return f"({self.expr(arguments[0])} {sign} {self.expr(arguments[1])})"
        if special is not None:
            text = special(arguments)
        elif name in CALLS:
            call = CALLS[name]
            if len(arguments) != len(call.parameters):
                raise Untranslated(f"{name} with {len(arguments)} arguments")
            given = {}
            for (kind, key), each in zip(call.parameters, arguments, strict=True):
                given[key] = (
                    {
                        "*": self.output,
                        "@": self.memory,
                        "&": self.handle,
                        "#": self.sequence,
                        "": self.plain,
                    }[kind](each)
                    if key != "_"
                    else "_"
                )
            text = call.text.format(**given)
            text = re.sub(r"\[None, None, MPI\.\w+\]", "None", text)
            text = re.sub(r"\[MPI\.IN_PLACE, [^\]]*\]", "MPI.IN_PLACE", text)
            text = re.sub(r"part\((.*?), (.*)\), (?=[^()]*, [^()]*, [^()]*\)$)", _part, text)
            text = re.sub(r"^_ = ", "", text).replace(", None)", ")")
            text = re.sub(r"\.Get\(\)$", ".Get()", text)
        else:
            raise Untranslated(name)
        if alone:
            return text.replace("; ", "\n")
        self.pre += text.split("; ")
        return "MPI.SUCCESS"

    def plain(self, node: Any) -> str:
        if isinstance(node, c_ast.UnaryOp) and node.op == "&":  # a status
            return self.handle(node)
        kind = self.typeof(node)
        if (
            kind.kind in ("pointer", "array")
            and kind.of is not None
            and kind.of.name == "MPI_Status"
        ):
            return self.handle(node)
        return self.expr(node)

    def sequence(self, node: Any) -> str:
        if isinstance(node, c_ast.UnaryOp) and node.op == "&":
            return self.address(node.expr)
        return self.memory(node)

    def base(self, node: Any, made: str) -> str:
        """The assignment of memory of MPI to a pointer."""
        node = node.expr if isinstance(node, c_ast.Cast) else node
        if not (isinstance(node, c_ast.UnaryOp) and node.op == "&"):
            return f"{self.memory(node)}[0] = np.frombuffer({made}, 'B')"
        kind = self.typeof(node.expr).of
        text = self.target(node.expr)
        self.assigned(text)
        return f"{text} = np.frombuffer({made}, {self.dtype(kind)})"

    def mpi_Alloc_mem(self, given: list[Any]) -> str:
        return self.base(given[2], f"MPI.Alloc_mem({self.expr(given[0])}, {self.expr(given[1])})")

    def mpi_Win_allocate(self, given: list[Any], name: str = "Allocate") -> str:
        window = self.output(given[5])
        texts = [self.expr(each) for each in given[:4]]
        return f"{window} = MPI.Win.{name}({', '.join(texts)}); " + self.base(
            given[4], f"{window}.tomemory()"
        )

    def mpi_Win_allocate_shared(self, given: list[Any]) -> str:
        return self.mpi_Win_allocate(given, "Allocate_shared")

    def mpi_Win_shared_query(self, given: list[Any]) -> str:
        window, rank = self.expr(given[0]), self.expr(given[1])
        memory, unit = f"{window}.Shared_query({rank})[0]", self.output(given[3])
        size = self.output(given[2])
        return f"{unit} = {window}.Shared_query({rank})[1]; {size} = len({memory}); " + self.base(
            given[4], memory
        )

    def mpi_Op_create(self, given: list[Any]) -> str:
        made = self.output(given[2])
        node = given[0].expr if isinstance(given[0], (c_ast.Cast, c_ast.UnaryOp)) else given[0]
        codes = [
            '"B"' if kind.of.kind == "void" else self.dtype(kind.of)
            for kind in self.functions.get(getattr(node, "name", ""), [])[:2]
        ]
        words = ", ".join([self.memory(node), *(codes or ['"B"', '"B"'])])
        return f"{made} = MPI.Op.Create(operation({words}), {self.expr(given[1])})"

    def mpi_Reduce_scatter(self, given: list[Any], name: str = "Reduce_scatter") -> str:
        one, other, counts, kind, op, comm = (
            self.memory(each) if i < 3 else self.expr(each) for i, each in enumerate(given[:6])
        )
        many = f"sum({counts}[:{comm}.Get_size()])"
        made = f"{self.output(given[6])} = " if len(given) > 6 else ""
        place = one == "MPI.IN_PLACE"
        source = one if place else f"[{one}, {many}, {kind}]"
        mine = many if place else f"{counts}[{comm}.Get_rank()]"
        target = f"[{other}, {mine}, {kind}]"
        return f"{made}{comm}.{name}({source}, {target}, {counts}[:{comm}.Get_size()], {op})"

    def mpi_Ireduce_scatter(self, given: list[Any]) -> str:
        return self.mpi_Reduce_scatter(given, "Ireduce_scatter")

    def mpi_Type_get_name(self, given: list[Any]) -> str:
        return ""

    def mpi_Win_get_attr(self, given: list[Any]) -> str:
        if getattr(given[1], "name", "") == "MPI_WIN_BASE":
            return self.base(given[2], f"{self.expr(given[0])}.tomemory()")
        raise Untranslated("MPI_Win_get_attr")

    mpi_Error_string = mpi_Type_set_name = mpi_Get_processor_name = mpi_Type_get_name

    # Functions of C

    def call_printf(self, given: list[Any]) -> str:
        form = self.expr(given[0])
        form = re.sub(
            r"%([-+ #0-9.]*)(?:hh|h|ll|l|z|j|t|L)?([a-zA-Z])",
            lambda m: "%" + m[1] + {"u": "d", "p": "s"}.get(m[2], m[2]),
            form,
        )
        if "\\x" in form or not form.startswith('"'):
            raise Untranslated("a format")
        values = [
            "'memory'"
            if self.typeof(each).kind in ("array", "pointer") and not _is_text(each)
            else self.expr(each)
            for each in given[1:]
        ]
        if not values:
            return f'print({form.replace("%%", "%")}, end="")'
        return f'print({form} % ({", ".join(values)},), end="")'

    def call_fprintf(self, given: list[Any]) -> str:
        return self.call_printf(given[1:])

    def call_MTestPrintfMsg(self, given: list[Any]) -> str:
        return ""

    def call_fflush(self, given: list[Any]) -> str:
        return "sys.stdout.flush()"

    def call_free(self, given: list[Any]) -> str:
        return ""

    def call_exit(self, given: list[Any]) -> str:
        return f"sys.exit({self.expr(given[0])})"

    def call_abort(self, given: list[Any]) -> str:
        return "sys.exit(134)"

    def call_assert(self, given: list[Any]) -> str:
        return f"assert {self.condition(given[0])}"

    def call_sleep(self, given: list[Any]) -> str:
        return f"time.sleep({self.expr(given[0])})"

    def call_usleep(self, given: list[Any]) -> str:
        return f"time.sleep({self.expr(given[0])} * 1e-6)"

    call_us_sleep = call_usleep

    def call_rand(self, given: list[Any]) -> str:
        return "random.randrange(32768)"

    def call_srand(self, given: list[Any]) -> str:
        return f"random.seed({self.expr(given[0])})"

    def call_time(self, given: list[Any]) -> str:
        return "int(time.time())"

    def call_atoi(self, given: list[Any]) -> str:
        return f"int({self.expr(given[0])})"

    def call_abs(self, given: list[Any]) -> str:
        return f"abs({self.expr(given[0])})"

    call_fabs = call_abs

    def stretch(self, node: Any, size: Any) -> str:
        """Bytes of memory as a slice of elements."""
        kind = self.typeof(node)
        while isinstance(node, c_ast.Cast):
            node = node.expr
            kind = self.typeof(node)
        text = self.memory(node)
        of = kind.of if kind.of is not None else Type("void")
        while of.kind == "array":
            of = of.of
            text = f"{text}.reshape(-1)"
        if isinstance(size, c_ast.BinaryOp) and size.op == "*":
            for one, other in ((size.left, size.right), (size.right, size.left)):
                if _is_sizeof(one) and self.size(self.sized(one)) == self.sizeof(of):
                    return f"{text}[0:{self.expr(other)}]"
        if _is_sizeof(size) and self.size(self.sized(size)) == self.sizeof(of):
            return f"{text}[0:1]"
        return f"{text}[0:({self.expr(size)}) // {self.sizeof(of)}]"

    def call_memcpy(self, given: list[Any]) -> str:
        return f"{self.stretch(given[0], given[2])} = {self.stretch(given[1], given[2])}"

    call_memmove = call_memcpy

    def call_memset(self, given: list[Any]) -> str:
        value = self.expr(given[1])
        text = self.stretch(given[0], given[2])
        if value in ("0", "(0)") or text.endswith("// 1]"):
            return f"{text} = {value}"
        return f'{text}.view("B")[:] = {value} & 255'

    def call_memcmp(self, given: list[Any]) -> str:
        one, other = (self.stretch(each, given[2]) for each in given[:2])
        return f"int(bytes({one}) != bytes({other}))"

    def call_fill_message_buffer(self, given: list[Any]) -> str:
        """Four equal bytes in each number."""
        return f"{self.stretch(given[0], given[1])} = {_PATTERNS}[{self.expr(given[2])}]"

    def call_has_buffer_expected_content(self, given: list[Any]) -> str:
        memory = self.stretch(given[0], given[1])
        return f"bool(({memory} == {_PATTERNS}[{self.expr(given[2])}]).all())"

    def call_has_error_manifested(self, given: list[Any]) -> str:
        return ""

    def call_MTest_Init(self, given: list[Any]) -> str:
        return "MPI.Init()"

    def call_MTest_Init_thread(self, given: list[Any]) -> str:
        return f"{self.output(given[3])} = MPI.Init_thread({self.expr(given[2])})"

    def call_MTest_Finalize(self, given: list[Any]) -> str:
        return f"assert {self.expr(given[0])} == 0\nMPI.Finalize()"

    def call_MTestReturnValue(self, given: list[Any]) -> str:
        return self.expr(given[0])

    def call_MTestSleep(self, given: list[Any]) -> str:
        return f"time.sleep({self.expr(given[0])})"

    def call_run(self, given: list[Any]) -> str:
        raise Untranslated("run")

    def call_MTestGetIntercomm(self, given: list[Any]) -> str:
        made, low = self.output(given[0]), self.output(given[1])
        self.pre.append(f"{made}, {low} = next(halves, (None, False))")
        self.pre.append(f"{made} = {made} or MPI.COMM_NULL")
        return f"{made} != MPI.COMM_NULL"

    def call_MTestFreeComm(self, given: list[Any]) -> str:
        return f"c.free({self.handle(given[0])})"

    def call_MTest_Start_thread(self, given: list[Any]) -> str:
        return f"c.start({self.memory(given[0])}, {self.memory(given[1])})"

    def call_MTest_Join_threads(self, given: list[Any]) -> str:
        return "c.join()"

    def call_MTest_thread_lock_create(self, given: list[Any]) -> str:
        return f"{self.output(given[0])} = c.threading.Lock()"

    def call_MTest_thread_lock(self, given: list[Any]) -> str:
        return f"{self.handle(given[0])}.acquire()"

    def call_MTest_thread_unlock(self, given: list[Any]) -> str:
        return f"{self.handle(given[0])}.release()"

    def call_MTestArgListCreate(self, given: list[Any]) -> str:
        return "None"

    call_MTestArgListCreate_arg = call_MTestArgListCreate

    def call_MTestArgListGetInt_with_default(self, given: list[Any]) -> str:
        return self.expr(given[2])

    call_MTestArgListGetLong_with_default = call_MTestArgListGetInt_with_default

    def call_MTestArgListGetMemType(self, given: list[Any]) -> str:
        return "1"

    def call_MTestAlloc(self, given: list[Any]) -> str:
        kind = self.typeof(given[2].expr.expr if isinstance(given[2], c_ast.Cast) else given[2])
        of = kind.of.of if kind.of is not None and kind.of.of is not None else Type("void")
        node = given[2].expr if isinstance(given[2], c_ast.Cast) else given[2]
        of = self.typeof(node).of.of if self.typeof(node).of is not None else of
        made = self.allocate(c_ast.FuncCall(c_ast.ID("malloc"), c_ast.ExprList([given[0]])), of)
        device = given[3].expr if isinstance(given[3], c_ast.Cast) else given[3]
        one = self.output(node)
        if getattr(device, "name", "") == "NULL":
            return f"{one} = {made}"
        return f"{one} = {made}; {self.output(device)} = {one}"

    def call_strcpy(self, given: list[Any]) -> str:
        return f"c.put_text({self.memory(given[0])}, c.text({self.chars(given[1])}))"

    def call_strncpy(self, given: list[Any]) -> str:
        text = f"c.text({self.chars(given[1])})[:{self.expr(given[2])} - 1]"
        return f"c.put_text({self.memory(given[0])}, {text})"

    def call_strcmp(self, given: list[Any]) -> str:
        return f"c.compare({', '.join(self.chars(each) for each in given[:2])})"

    def call_strncmp(self, given: list[Any]) -> str:
        texts = [self.chars(each) for each in given[:2]]
        return f"c.compare({', '.join(texts)}, {self.expr(given[2])})"

    def call_strlen(self, given: list[Any]) -> str:
        return f"len(c.text({self.chars(given[0])}))"

    def call_sprintf(self, given: list[Any]) -> str:
        form = self.call_printf(given[1:]).removeprefix("print(").removesuffix(', end="")')
        return f"c.put_text({self.memory(given[0])}, {form})"

    def call_snprintf(self, given: list[Any]) -> str:
        return self.call_sprintf([given[0], *given[2:]])

    def call_qsort(self, given: list[Any]) -> str:
        texts = self.memory(given[0]), self.expr(given[1]), self.memory(given[3])
        return f"c.sort({', '.join(texts)})"

    def call_getenv(self, given: list[Any]) -> str:
        return "None"

    def chars(self, node: Any) -> str:
        """An expression of a text."""
        if isinstance(node, c_ast.Constant):
            return str(node.value)
        return self.memory(node)

    def call_MTestGetIntracommGeneral(self, given: list[Any]) -> str:
        made = self.output(given[0])
        self.pre.append(f"{made} = next(communicators, MPI.COMM_NULL)")
        return f"{made} != MPI.COMM_NULL"

    call_MTestGetIntracomm = call_MTestGetIntracommGeneral

    def call_MTestError(self, given: list[Any]) -> str:
        return "raise AssertionError"

    call_MTEST_VG_MEM_INIT = call_MTestArgListDestroy = call_MTestFree = call_free
    call_MTestCopyContent = call_MTestCommRandomize = call_MTest_init_thread_pkg = call_free
    call_MTest_finalize_thread_pkg = call_MTest_thread_lock_free = call_perror = call_free
    call_MTestPrintError = call_MTestPrintErrorMsg = call_free

    def call_omp_get_thread_num(self, given: list[Any]) -> str:
        self.count += 1
        self.pre.append(f"thread{self.count} = omp.number()")
        return f"thread{self.count}"

    def call_omp_get_num_threads(self, given: list[Any]) -> str:
        return "omp.threads()"

    def call_omp_set_num_threads(self, given: list[Any]) -> str:
        return f"omp.wanted({self.expr(given[0])})"

    def call_omp_init_lock(self, given: list[Any]) -> str:
        return f"{self.output(given[0])} = omp.Lock()"

    def call_omp_set_lock(self, given: list[Any]) -> str:
        return f"{self.handle(given[0])}.acquire()"

    def call_omp_unset_lock(self, given: list[Any]) -> str:
        return f"{self.handle(given[0])}.release()"

    def call_omp_destroy_lock(self, given: list[Any]) -> str:
        return ""


def _part(found: re.Match[str]) -> str:
    base, size = found[1], found[2]
    return f"{base}, " if base == "None" else f'{base}.view("B")[:{size}], '


def _is_sizeof(node: Any) -> bool:
    return isinstance(node, c_ast.UnaryOp) and node.op == "sizeof"


def _is_text(node: Any) -> bool:
    return isinstance(node, c_ast.Constant) or (
        isinstance(node, c_ast.ArrayRef) and getattr(node.name, "name", "") == "argv"
    )


def _sections(node: Any) -> list[Any]:
    """The statements of the sections."""
    found, items = [], list(node.block_items or [])
    position = 0
    while position < len(items):
        if isinstance(items[position], c_ast.Pragma):
            found.append(items[position + 1])
            position += 1
        position += 1
    return found


class _Jumps(c_ast.NodeVisitor):
    """Whether statements jump to a label."""

    def __init__(self, nodes: list[Any], label: str) -> None:
        self.label, self.found = label, False
        for each in nodes:
            self.visit(each)

    def visit_Goto(self, node: Any) -> None:
        self.found |= node.name == self.label


class _Assigns(c_ast.NodeVisitor):
    """Whether a name is assigned below a node, or its address is taken."""

    def __init__(self, node: Any, name: str) -> None:
        self.name, self.found = name, False
        self.visit(node)

    def visit_Assignment(self, node: Any) -> None:
        self.found |= getattr(node.lvalue, "name", "") == self.name
        self.generic_visit(node)

    def visit_UnaryOp(self, node: Any) -> None:
        if node.op in ("++", "--", "p++", "p--", "&"):
            self.found |= getattr(node.expr, "name", "") == self.name
        self.generic_visit(node)


class _Cells(c_ast.NodeVisitor):
    """The scalars of a function whose address is taken for more than a result of MPI."""

    def __init__(self, node: Any, functions: dict[str, list[Type]]) -> None:
        self.found: set[str] = set()
        self.functions = functions
        self.visit(node)

    def visit_FuncCall(self, node: Any) -> None:
        name = getattr(node.name, "name", "")
        kinds = [kind for kind, _ in CALLS[name].parameters] if name in CALLS else []
        if name.startswith("MPI_Init") or name == "MPI_Init_thread":
            kinds = ["*"] * 4
        if name in (
            "MPI_Win_allocate",
            "MPI_Win_allocate_shared",
            "MPI_Alloc_mem",
            "MPI_Win_shared_query",
            "MPI_Win_get_attr",
            "MPI_Type_get_name",
            "MPI_Error_string",
            "omp_init_lock",
            "omp_set_lock",
            "omp_unset_lock",
            "omp_destroy_lock",
            "MPI_Get_processor_name",
            "MPI_Buffer_detach",
        ):
            kinds = ["*"] * 8
        for i, each in enumerate(node.args.exprs if node.args else []):
            plain = each.expr if isinstance(each, c_ast.Cast) else each
            taken = (
                isinstance(plain, c_ast.UnaryOp)
                and plain.op == "&"
                and isinstance(plain.expr, c_ast.ID)
            )
            if taken and i < len(kinds) and kinds[i] in ("*", "&", ""):
                continue
            if taken and i < len(kinds) and kinds[i] == "#" and "all" in name:
                continue
            self.visit(each)

    def visit_UnaryOp(self, node: Any) -> None:
        if node.op == "&" and isinstance(node.expr, c_ast.ID):
            self.found.add(node.expr.name)
        else:
            self.generic_visit(node)
