"""Writes the parts of these pages that are made from the code: `python docs/renew.py`."""

from __future__ import annotations

import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parent

# Between these lines of `cli.md` is the table of options.
BEGIN, END = "<!-- options: docs/renew.py -->\n", "<!-- end -->\n"


def options_table() -> str:
    """The options that `--cfg` takes, as a table."""
    from pysmpi.platform.config import OPTIONS

    rows = ["| option | default | meaning |", "| --- | --- | --- |"]
    for option in OPTIONS.values():
        default = f"`{option.default}`" if option.default else ""
        rows.append(f"| `{option.name}` | {default} | {option.help} |")
    rows.append("| `smpi/OPERATION` | | algorithm of a collective, as `--coll` |")
    return "\n".join(rows) + "\n\n" + foreign_table()


def foreign_table() -> str:
    """The options of SimGrid that have no effect, and the reasons, as a table."""
    from pysmpi.platform.simgrid_names import FOREIGN

    reasons: dict[str, list[str]] = {}
    for row in FOREIGN.values():
        reasons.setdefault(row.line(), []).append(f"`{row.name}`")
    rows = ["| without effect | reason, or what does the same |", "| --- | --- |"]
    rows += [f"| {', '.join(names)} | {reason} |" for reason, names in reasons.items()]
    return "\n".join(rows) + "\n"


def report_table(*path: str) -> str:
    """The keys of a report, or of a part of it, as a table."""
    import json

    import pysmpi

    home = Path(pysmpi.__file__).parent / "runtime" / "reports" / "report.schema.json"
    part = json.loads(home.read_text(encoding="utf-8"))
    for name in path:
        part = part[name]
    rows = ["| key | meaning |", "| --- | --- |"]
    for key, about in part["properties"].items():
        rows.append(f"| `{key}` | {about.get('description', '')} |")
    return "\n".join(rows) + "\n"


def parameters_table() -> str:
    """The options of `pysmpi.run` and `Options`, as a table."""
    from pysmpi.runtime.options import DEFAULTS, FIELDS

    rows = ["| option | type | default | meaning |", "| --- | --- | --- | --- |"]
    for name, one in FIELDS.items():
        about = one.metadata
        choices = " \\| ".join(f'"{choice}"' for choice in about["kind"].choices)
        kind = choices or about["kind"].expected
        text = about["help"].replace("|", "\\|").replace("; repeatable", "")
        rows.append(f"| `{name}` | {kind} | `{DEFAULTS[name]!r}` | {text} |")
    return "\n".join(rows) + "\n"


def _between(text: str, begin: str, table: str) -> str:
    head, _, rest = text.partition(begin)
    return f"{head}{begin}{table}{END}{rest.partition(END)[2]}"


def pages() -> dict[Path, str]:
    """The text of each page that is made from the code, in whole or in part."""
    from pysmpi import diagnostics
    from pysmpi.checkers import CHECKERS

    CHECKERS.names()  # they register their diagnostics
    path, api = DOCS / "reference" / "cli.md", DOCS / "reference" / "api.md"
    text = _between(path.read_text(encoding="utf-8"), BEGIN, options_table())
    text = _between(text, "<!-- report: docs/renew.py -->\n", report_table())
    rank = report_table("properties", "ranks", "items")
    text = _between(text, "<!-- report of a rank: docs/renew.py -->\n", rank)
    return {
        DOCS / "reference" / "diagnostics.md": diagnostics.page(),
        path: text,
        api: _between(
            api.read_text(encoding="utf-8"),
            "<!-- options: docs/renew.py -->\n",
            parameters_table(),
        ),
    }


if __name__ == "__main__":
    sys.path.insert(0, str(DOCS.parent))
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
