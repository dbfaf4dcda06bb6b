"""Finding a program: those that ship, and a user's own file."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path

from pysmpi.errors import UsageError
from pysmpi.io.reading import read_text
from pysmpi.memory.primitives.operations import Program
from pysmpi.text import did_you_mean

_ROOM = "pysmpi.memory.primitives.programs"
_SHIPPED = {
    "sr1": ("sr1", "program"),
    "sr2": ("sr2", "program"),
    "barrier-central": ("barriers", "central"),
    "barrier-dissemination": ("barriers", "dissemination"),
}


def shipped() -> list[str]:
    """Names of the programs that ship with pysmpi."""
    return list(_SHIPPED)


def program(name: str | os.PathLike[str], settings: Mapping[str, str] | None = None) -> Program:
    """The included program of that name, or the result of `program` in a Python file.

    settings: values of the parameters of that function, as text; they are converted to the type of
    the parameter's default. Raises UsageError for errors in the program or the settings.
    """
    text = os.fspath(name)
    if text.endswith(".py") or os.sep in text:
        make = _of_file(Path(text))
    elif text in _SHIPPED:
        module, function = _SHIPPED[text]
        make = getattr(import_module(f"{_ROOM}.{module}"), function)
    else:
        hint = did_you_mean(text, _SHIPPED, '"{}"')
        raise UsageError(
            f"program: expected a file PROGRAM.py or one of {', '.join(_SHIPPED)}, got "
            f'"{text}"{hint}'
        )
    return _called(make, text, settings or {})


def parameters(name: str) -> dict[str, object]:
    """The parameters of a shipped program, with their defaults."""
    module, function = _SHIPPED[name]
    make = getattr(import_module(f"{_ROOM}.{module}"), function)
    return {
        each.name: each.default
        for each in inspect.signature(make, eval_str=True).parameters.values()
    }


def _of_file(path: Path) -> Callable[..., Program]:
    text = read_text(path, "a Python program")
    try:
        code = compile(text, str(path), "exec")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", None)
        place = f"{path}:{line}" if line else str(path)
        raise UsageError(f"{place}: expected a Python program: {error}") from None
    space: dict[str, object] = {"__name__": path.stem, "__file__": str(path)}
    try:
        exec(code, space)
    except Exception as error:
        raise UsageError(f"{_place(error, path)}: {type(error).__name__}: {error}") from error
    make = space.get("program")
    if not callable(make):
        raise UsageError(f"{path}: expected a function program() that returns a Program, got none")
    result: Callable[..., Program] = make
    return result


def _called(make: Callable[..., Program], where: str, settings: Mapping[str, str]) -> Program:
    parameters = {each.name: each.default for each in inspect.signature(make).parameters.values()}
    values = {}
    for name, text in settings.items():
        if name not in parameters:
            listed = f"a setting among {', '.join(parameters)}" if parameters else "no setting"
            raise UsageError(f'{where}: expected {listed}, got "{name}"')
        values[name] = _read(name, text, parameters[name], where)
    try:
        result = make(**values)
    except UsageError:
        raise
    except Exception as error:
        raise UsageError(
            f"{_place(error, Path(where))}: {type(error).__name__}: {error}"
        ) from error
    if not isinstance(result, Program):
        raise UsageError(
            f"{where}: expected program() to return a Program, got a {type(result).__name__}"
        )
    return result


def _read(name: str, text: str, default: object, where: str) -> object:
    if isinstance(default, bool):
        if text.lower() in ("true", "yes", "on", "1"):
            return True
        if text.lower() in ("false", "no", "off", "0"):
            return False
        raise UsageError(f'{where}: {name}: expected true or false, got "{text}"')
    if isinstance(default, (int, float)):
        try:
            return type(default)(text)
        except ValueError:
            kind = "a whole number" if isinstance(default, int) else "a number"
            raise UsageError(f'{where}: {name}: expected {kind}, got "{text}"') from None
    return text


def _place(error: Exception, path: Path) -> str:
    """The line of the user's file with the error."""
    line = None
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(path):
            line = trace.tb_lineno
        trace = trace.tb_next
    return f"{path}:{line}" if line else str(path)
