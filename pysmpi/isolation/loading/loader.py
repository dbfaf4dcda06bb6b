"""Programs of the command line, found and compiled once, run by every rank.

A program starts in a rank as `python` starts it in a process: with its own module `__main__`, and
the same `sys.argv`, `sys.path[0]`, `__file__`, `__spec__`. Ranks share its code objects, unless
compute is measured (see `own_code.py`).
"""

from __future__ import annotations

import importlib.util
import linecache
import os
import runpy
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.machinery import (
    BuiltinImporter,
    ModuleSpec,
    PathFinder,
    SourceFileLoader,
    SourcelessFileLoader,
)
from types import CodeType, FunctionType, ModuleType
from typing import Any

from pysmpi.errors import UsageError
from pysmpi.io.reading import open_lines, read_bytes, similar
from pysmpi.isolation.exchange import Exchange
from pysmpi.isolation.kinds.rank_environment import here
from pysmpi.isolation.loading.foreign import foreign
from pysmpi.isolation.loading.own_code import OwnCode
from pysmpi.isolation.loading.python_flags import PythonFlags

_NOT_PROGRAMS = ("mpi4py", "pysmpi")  # packages with modules that stay shared under `-m`


class _NotFound(ImportError):
    """A module that `-m` names cannot be run."""


_PLAIN = (bool, int, float, str, type(None))  # arguments that JSON can hold


def _digest(text: bytes) -> str:
    from hashlib import sha256  # only recordings of compute need it

    return sha256(text).hexdigest()[:16]


class RankProgram:
    """A program that each rank runs.

    `name` is for messages. `arguments` is its `sys.argv`, None for the interpreter's own, and
    `path_entry` is the first entry of its `sys.path`. `private` names modules that belong to the
    program wherever they are installed; `flags` are those of its interpreter.
    """

    name: str
    arguments: list[str] | None = None
    path_entry: str | None = None
    private: tuple[str, ...] = ()
    c_functions: frozenset[str] = frozenset()  # of the C library, if it calls some itself
    flags = PythonFlags()
    rewriter: Any = None  # compiles the program with other functions, see shadow/install.py
    # Gets the code that a rank is about to run.
    starting: Callable[[CodeType], object] | None = None
    own_code: OwnCode | None = None  # None if ranks share code
    exchange: Exchange | None = None  # of the state of the ranks that run it
    last = False  # whether the process of the simulator ends after the run

    def configure(self, settings: Any) -> bool:
        """Take what acts on compiled programs from the settings of a run; whether this is one."""
        return False

    def prepare(self) -> None:
        """Find and compile the program, once for all ranks; raises `SyntaxError`."""

    def close(self) -> None:
        """No rank begins the program any more."""

    def identity(self) -> dict[str, object]:
        """The identity of the program in a form for JSON: its name, arguments and text.

        `text` is a digest of its source, None if that is not known; so are the arguments.
        """
        arguments = self.arguments
        words = None if arguments is None else arguments[1:]
        return {"name": os.path.basename(self.name), "arguments": words, "text": None}

    def main(self) -> Callable[[], object]:
        """The function that runs it in the rank that is running, and returns its value.

        Each rank waits below the frame of its caller, so `main` does the rest.
        """
        raise TypeError(f"{type(self).__name__} cannot be run")


class FunctionProgram(RankProgram):
    """A Python function, called by every rank; modules that it uses already are shared."""

    def __init__(
        self,
        function: Callable[..., object],
        args: Sequence[object] = (),
        kwargs: Mapping[str, object] | None = None,
    ) -> None:
        self.function = function
        self.args = tuple(args)
        self.kwargs = dict(kwargs or {})
        self.name = getattr(function, "__qualname__", repr(function))

    def identity(self) -> dict[str, object]:
        plain = not self.kwargs and all(type(value) in _PLAIN for value in self.args)
        return {"name": self.name, "arguments": list(self.args) if plain else None, "text": None}

    def main(self) -> Callable[[], object]:
        code = getattr(self.function, "__code__", None)
        if self.starting is not None and code is not None:
            self.starting(code)
        if not self.args and not self.kwargs:
            return self.function
        return lambda: self.function(*self.args, **self.kwargs)


def install_main(exchange: Exchange | None, module: ModuleType) -> None:
    """Let a module be `__main__` of the running rank."""
    if exchange is None:
        sys.modules["__main__"] = module
    else:
        exchange.put_own("__main__", module)


class _MainProgram(RankProgram):
    """A program that is a module `__main__`."""

    code: CodeType
    file: str | None = None
    package: str | None = None
    spec: ModuleSpec | None = None
    loader: Any = BuiltinImporter  # as in Python without a file
    cached: str | None = None

    def main(self) -> Callable[[], object]:
        environment = here()
        if environment is None:
            raise RuntimeError("a program runs in a rank only")
        if self.flags:
            self.flags.begin()
        module = ModuleType("__main__")
        namespace = vars(module)
        namespace["__builtins__"] = sys.modules["builtins"]
        namespace["__package__"] = self.package
        namespace["__spec__"] = self.spec
        namespace["__loader__"] = self.loader
        if self.file is not None:
            namespace["__file__"] = self.file
            namespace["__cached__"] = self.cached
        install_main(self.exchange, module)
        if self.starting is not None:
            self.starting(self.code)
        code = self.code if self.own_code is None else self.own_code.of(self.code)
        # Like `exec`, but without a C frame, which each switch of ranks would copy.
        return FunctionType(code, namespace)

    def _rewritten(self, source: str | bytes | None, name: str) -> CodeType | None:
        """The code with replaced functions; None if there are none to replace."""
        if self.rewriter is None or not self.rewriter.concerns("__main__"):
            return None
        code: CodeType | None = self.rewriter.compiled(
            "__main__", source, name, self.flags.optimize
        )
        return code

    def _compiled(self, source: str | bytes, name: str) -> CodeType:
        rewritten = self._rewritten(source, name)
        if rewritten is not None:
            return rewritten
        code: CodeType = compile(
            source, name, "exec", dont_inherit=True, optimize=self.flags.optimize
        )
        return code

    def _show_source(self, source: str) -> None:
        """Let tracebacks show source that is in no file."""
        name = self.code.co_filename
        linecache.cache[name] = (len(source), None, source.splitlines(True), name)


class CommandProgram(_MainProgram):
    """The text of `-c`, or of the cell of a notebook, as if it were in a file."""

    def __init__(self, source: str, arguments: Sequence[str] = (), file: str = "<string>") -> None:
        self.name = "-c"
        self.source = source
        self.source_file = file
        self.arguments = ["-c", *arguments]
        self.path_entry = ""

    def identity(self) -> dict[str, object]:
        return {**super().identity(), "text": _digest(self.source.encode())}

    def prepare(self) -> None:
        self.code = self._compiled(self.source, self.source_file)
        self._show_source(self.source)


class StdinProgram(_MainProgram):
    """A program read from standard input, `-`."""

    def __init__(self, arguments: Sequence[str] = (), stream: Any = None) -> None:
        self.name = "-"
        self.arguments = ["-", *arguments]
        self.path_entry = ""
        self.file = "<stdin>"
        self.stream = stream

    def prepare(self) -> None:
        stream = sys.stdin if self.stream is None else self.stream
        source = stream.read()
        self.code = self._compiled(source, "<stdin>")
        self._show_source(source)


def _may_be_archive(path: str) -> bool:
    """Whether the end of a file may be that of an archive; `zipfile` takes long to import."""
    try:
        with open_lines(path) as stream:
            size = stream.seek(0, os.SEEK_END)
            stream.seek(max(0, size - 22 - 65_535))  # the end of an archive and its comment
            return b"PK\5\6" in stream.read(22 + 65_535)
    except (OSError, UsageError):
        return False  # the error comes when the program is read


class ScriptProgram(_MainProgram):
    """A file of Python source or byte code, or a directory or zip file with a `__main__`."""

    def __init__(self, path: str, arguments: Sequence[str] = ()) -> None:
        self.name = path
        self.path = os.path.abspath(path)
        self.arguments = [path, *arguments]
        if not os.path.exists(path):
            raise UsageError(
                f"{path}: expected a Python program, got no such file{similar(path, ('.py',))}"
            )
        if os.path.isdir(path) or self._is_archive():
            self.archive = True
            self.path_entry = self.path
        else:
            self.archive = False
            self.path_entry = os.path.dirname(os.path.realpath(self.path))

    def _is_archive(self) -> bool:
        if not (os.path.isfile(self.path) and _may_be_archive(self.path)):
            return False
        import zipfile

        return zipfile.is_zipfile(self.path)

    def identity(self) -> dict[str, object]:
        if self.archive:
            return super().identity()
        try:
            with open(self.path, "rb") as stream:
                text = _digest(stream.read())
        except OSError:
            text = None  # the error is reported when the program begins
        return {**super().identity(), "text": text}

    def prepare(self) -> None:
        if self.archive:
            self._prepare_archive()
            return
        self.file = self.path
        data = read_bytes(self.path)
        if data.startswith(importlib.util.MAGIC_NUMBER):
            self.loader = SourcelessFileLoader("__main__", self.path)
            self._rewritten(None, self.path)
            try:
                self.code = self.loader.get_code("__main__")
            except (ImportError, EOFError, ValueError, TypeError) as error:
                raise UsageError(f"{self.name}: expected byte code of Python: {error}") from None
            return
        kind = foreign(data)
        if kind:
            raise self._refused(kind)
        self.loader = SourceFileLoader("__main__", self.path)
        try:
            self.code = self._compiled(data, self.path)
        except SyntaxError:
            first = data.partition(b"\n")[0]
            if first.startswith(b"#!") and b"python" not in first:
                raise UsageError(
                    f"{self.name}: expected a Python program, got a script of "
                    f"{os.fsdecode(first[2:]).strip()}; give the program that it starts"
                ) from None
            if b"\0" in data:
                raise self._refused("other data") from None
            raise
        except ValueError as error:
            raise self._refused("other data" if b"\0" in data else str(error)) from None
        except (RecursionError, MemoryError):
            raise self._refused("one that is nested too deeply") from None

    def _refused(self, found: str) -> UsageError:
        return UsageError(f"{self.name}: expected a Python program, got {found}")

    def _prepare_archive(self) -> None:
        spec = PathFinder.find_spec("__main__", [self.path])
        code = None
        if spec is not None and spec.loader is not None:
            code = spec.loader.get_code("__main__")  # type: ignore[attr-defined]
            if self.rewriter is not None:
                source = spec.loader.get_source("__main__")  # type: ignore[attr-defined]
                code = self._rewritten(source, spec.origin or self.path) or code
        if spec is None or code is None:
            java = os.path.isfile(self.path) and self.path.endswith((".jar", ".war"))
            found = "an archive of Java" if java else "none"
            raise UsageError(f"{self.name}: expected a __main__ module in it, got {found}")
        self.code = code
        self.spec = spec
        self.loader = spec.loader
        self.file = spec.origin
        self.cached = spec.cached
        self.package = ""


class ModuleProgram(_MainProgram):
    """A module of the search path, or a package with a `__main__`: `-m`."""

    def __init__(self, module: str, arguments: Sequence[str] = ()) -> None:
        self.name = module
        self.module = module
        self.arguments = ["-m", *arguments]
        self.path_entry = os.getcwd()
        self._replaced: CodeType | None = None  # the code with other functions in it
        self.root = module.partition(".")[0]
        if self.root not in sys.stdlib_module_names and self.root not in _NOT_PROGRAMS:
            self.private = (self.root,)

    def prepare(self) -> None:
        """Check that the module exists."""
        if self.module.startswith(".") or not self.module:
            raise UsageError(f"-m {self.module}: expected the absolute name of a module")
        if self.root in sys.builtin_module_names or self.root in sys.stdlib_module_names:
            return
        path = [self.path_entry or "", *sys.path]
        if (
            PathFinder.find_spec(self.root, path) is None
            and importlib.util.find_spec(self.root) is None
        ):
            raise UsageError(f"-m {self.module}: no module {self.root!r}")

    def main(self) -> Callable[[], object]:
        # Importing the parent package runs code of the program, so each rank has to search.
        try:
            details = runpy._get_module_details  # type: ignore[attr-defined]
            name, self.spec, self.code = details(self.module, _NotFound)
        except _NotFound as error:
            raise UsageError(f"-m {self.module}: {error}, expected a module or package") from None
        assert self.spec is not None
        self.loader = self.spec.loader
        if self.rewriter is not None:
            if self._replaced is None:
                source = self.loader.get_source(self.spec.name)
                self._replaced = self._rewritten(source, self.spec.origin or name) or self.code
            self.code = self._replaced
        self.file = self.spec.origin
        self.cached = self.spec.cached
        self.package = self.spec.parent
        sys.argv[0] = self.file or name
        return super().main()
