"""Writes the pages, and parts of pages, that are made from the code: `python docs/renew.py`."""

from __future__ import annotations

import inspect
import json
import sys
import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import click

DOCS = Path(__file__).resolve().parent
REFERENCE = DOCS / "reference"

# The end of a part; it begins with a line such as `<!-- report: docs/renew.py -->`.
END = "<!-- end -->\n"


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    lines = [list(head), ["---"] * len(list(head)), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("*", "\\*")


def simgrid_options() -> str:
    """The options that `--cfg` takes, as tables."""
    from pysmpi.platform.config import OPTIONS
    from pysmpi.platform.simgrid_names import FOREIGN

    rows = [
        (f"`{one.name}`", f"`{one.default}`" if one.default else "", one.help)
        for one in OPTIONS.values()
    ]
    rows.append(("`smpi/OPERATION`", "", "algorithm of a collective, as `--coll`"))
    reasons: dict[str, list[str]] = {}
    for foreign in FOREIGN.values():
        reasons.setdefault(foreign.line(), []).append(f"`{foreign.name}`")
    without = [(", ".join(names), reason) for reason, names in reasons.items()]
    return (
        _table(("option", "default", "meaning"), rows)
        + "\n"
        + _table(("without effect", "reason, or what does the same"), without)
    )


def report_keys(*path: str) -> str:
    """The keys of a report, or of a part of it, as a table."""
    import pysmpi

    home = Path(pysmpi.__file__).parent / "reports" / "report.schema.json"
    part = json.loads(home.read_text(encoding="utf-8"))
    for name in path:
        part = part[name]
    rows = [(f"`{key}`", about.get("description", "")) for key, about in part["properties"].items()]
    return _table(("key", "meaning"), rows)


def parameters() -> str:
    """The options of `pysmpi.run` and `Options`, as a table."""
    from pysmpi.job.options import DEFAULTS, FIELDS

    rows = []
    for name, one in FIELDS.items():
        about = one.metadata
        kind = " \\| ".join(f'"{choice}"' for choice in about["kind"].choices)
        text = about["help"].replace("|", "\\|").replace("; repeatable", "")
        rows.append((f"`{name}`", kind or about["kind"].expected, f"`{DEFAULTS[name]!r}`", text))
    return _table(("option", "type", "default", "meaning"), rows)


def python_page() -> str:
    """The public names of pysmpi, with their signatures and docstrings."""
    import pysmpi

    parts = [
        "# Functions and classes\n",
        "The public names of the package `pysmpi`, from their docstrings. "
        "[Python interface](api.md) explains\nhow they go together.\n",
    ]
    for name in sorted(pysmpi.__all__, key=str.lower):
        thing = getattr(pysmpi, name)
        if not callable(thing):
            continue
        parts.append(f"## {name}\n")
        if inspect.isfunction(thing) or name == "sample":
            parts.append(f"```python\n{_signature(name, thing)}\n```\n")
        parts.append(_markdown(inspect.getdoc(thing) or "") + "\n")
    return "\n".join(parts)


def _signature(name: str, function: Any) -> str:
    signature = inspect.signature(function)
    kinds = [one.kind for one in signature.parameters.values()]
    shown = []
    for one in signature.parameters.values():
        if one.kind is one.KEYWORD_ONLY and one.VAR_POSITIONAL not in kinds and "*" not in shown:
            shown.append("*")
        shown.append(str(one).replace("'", "") if one.default is one.empty else _defaulted(one))
    returned = signature.return_annotation
    end = "" if returned is signature.empty else f" -> {str(returned).strip(chr(39))}"
    line = f"{name}({', '.join(shown)}){end}"
    if len(line) <= 88:
        return line
    return f"{name}(\n" + "".join(f"    {one},\n" for one in shown) + f"){end}"


def _defaulted(one: inspect.Parameter) -> str:
    kind = "" if one.annotation is one.empty else f": {str(one.annotation).strip(chr(39))}"
    default = one.default.__name__ if inspect.isclass(one.default) else repr(one.default)
    return f"{one.name}{kind} = {default}"


def _markdown(docstring: str) -> str:
    """A docstring, with its indented examples as blocks of code."""
    out = []
    for block in docstring.replace("::\n", ":\n").split("\n\n"):
        if block.startswith("    "):
            out.append("```python\n" + inspect.cleandoc(block) + "\n```")
        else:
            out.append(block)
    return "\n\n".join(out)


def _commands() -> Iterator[tuple[str, click.Command, click.Context]]:
    """Every command and subcommand, with its name and its context."""
    from pysmpi.cli.main import COMMANDS
    from pysmpi.cli.main import command as root

    top = click.Context(root, info_name="pysmpi")
    for name in COMMANDS:
        command = root.get_command(top, name)
        assert command is not None
        context = click.Context(command, info_name=name, parent=top)
        yield f"pysmpi {name}", command, context
        if isinstance(command, click.Group):
            for sub in command.list_commands(context):
                one = command.get_command(context, sub)
                assert one is not None
                inner = click.Context(one, info_name=sub, parent=context)
                yield f"pysmpi {name} {sub}", one, inner


def options_page() -> str:
    """Every command with its options, as `--help` shows them."""
    parts = [
        "# Commands and options\n",
        "The output of `--help` of each command. [Command line](cli.md) says when to use which.\n",
    ]
    for name, command, context in _commands():
        usage = " ".join(command.collect_usage_pieces(context))
        usage = textwrap.fill(f"{name} {usage}", 80, subsequent_indent="    ")
        parts.append(f"## {name}\n\n```\n{usage}\n```\n")
        parts.append(_markdown(inspect.cleandoc(command.help or "").replace("\b\n", "")) + "\n")
        for title, rows in _sections(command, context).items():
            if title:
                parts.append(f"{title}:\n")
            parts.append(_table(("option", "meaning"), rows))
    return "\n".join(parts)


def _sections(command: click.Command, context: click.Context) -> dict[str, list[tuple[str, str]]]:
    """The rows of a command's options, by the title of their section."""
    from pysmpi.cli.run_options import SECTIONS, Sectioned

    titles = {}
    if isinstance(command, Sectioned):
        titles = {name: title for title, names in SECTIONS.items() for name in names}
    found: dict[str, list[tuple[str, str]]] = {
        title: [] for title in dict.fromkeys(titles.values())
    }
    for param in command.get_params(context):
        record = param.get_help_record(context)
        if record is None or not isinstance(param, click.Option) or "--help" in param.opts:
            continue
        spelling, meaning = record
        written = spelling.replace("|", "\\|").split(", ")
        title = titles.get(str(param.name), "More" if titles else "")
        found.setdefault(title, []).append(
            (", ".join(f"`{one}`" for one in written), _cell(meaning))
        )
    return {title: rows for title, rows in found.items() if rows}


def algorithms_page() -> str:
    """The algorithms of all collective operations, and the selectors."""
    from pysmpi.collectives import registry

    parts = [
        "# Algorithms of collectives\n",
        "The names that `--coll OPERATION=ALGORITHM` takes. P is the number of ranks. "
        "[Collectives](collectives.md)\ntells how one is chosen.\n",
        "## Selectors\n\n`--selector NAME` chooses the algorithm of each call as a library does.\n",
        _table(
            ("selector", "chooses"),
            [
                (f"`{name}`", registry.find_selector(name).line)
                for name in registry.SELECTORS.names()
            ],
        ),
    ]
    for operation in registry.COLLECTIVES.names():
        rows = [
            (f"`{name}`", _cell(one.line))
            for name, one in registry.algorithms_of(operation).items()
        ]
        parts += [f"## {operation}\n", _table(("algorithm", "what it does"), rows)]
    return "\n".join(parts)


def measured_presets() -> str:
    """The presets with measured curves, and how far each was checked."""
    from pysmpi.network.measured import load
    from pysmpi.network.presets import HYBRID

    rows = [
        (f"`{name}`", preset.line, load(name).checked())
        for name, preset in HYBRID.items()
        if preset.measured
    ]
    return _table(("preset", "network", "checked"), rows)


def diagnostics_pages() -> dict[Path, str]:
    """A page for each diagnostic, and the table of them."""
    from pysmpi import diagnostics
    from pysmpi.checkers import CHECKERS

    CHECKERS.names()  # they register their diagnostics
    found = {}
    rows = []
    for kind in diagnostics.DIAGNOSTICS.values():
        page = REFERENCE / "diagnostics" / f"{kind.code.lower()}.md"
        found[page] = diagnostics.explanation(kind).rstrip("\n") + "\n"
        rows.append((f"[{kind.code}](diagnostics/{page.name})", kind.title))
    found[REFERENCE / "diagnostics.md"] = (
        "# Diagnostics\n\n"
        "Every problem that pysmpi finds in a program has a code that does not change from "
        "version\nto version. `pysmpi explain CODE` prints its page. A title stands for its code: "
        "`pysmpi explain\ndeadlock`.\n\n"
    ) + _table(("code", "problem"), rows)
    return found


def _between(page: Path, **tables: str) -> str:
    """A page with new tables between their lines."""
    text = page.read_text(encoding="utf-8")
    for name, table in tables.items():
        begin = f"<!-- {name.replace('_', ' ')}: docs/renew.py -->\n"
        head, found, rest = text.partition(begin)
        assert found, (page, begin)
        text = f"{head}{begin}{table}{END}{rest.partition(END)[2]}"
    return text


def pages() -> dict[Path, str]:
    """The text of each page that is made from the code, in whole or in part."""
    report = REFERENCE / "report.md"
    simgrid = REFERENCE / "simgrid-options.md"
    platform = REFERENCE / "platform.md"
    rank = report_keys("properties", "ranks", "items")
    return {
        **diagnostics_pages(),
        REFERENCE / "options.md": options_page(),
        REFERENCE / "algorithms.md": algorithms_page(),
        REFERENCE / "python.md": python_page(),
        REFERENCE / "api.md": _between(REFERENCE / "api.md", options=parameters()),
        report: _between(report, report=report_keys(), report_of_a_rank=rank),
        simgrid: _between(simgrid, options=simgrid_options()),
        platform: _between(platform, measured_presets=measured_presets()),
    }


if __name__ == "__main__":
    sys.path.insert(0, str(DOCS.parent))
    for path, text in pages().items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    for path in sorted(set((REFERENCE / "diagnostics").glob("*.md")) - set(pages())):
        path.unlink()
