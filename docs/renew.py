"""Writes the parts of these pages that are made from the code: `python docs/renew.py`."""

from __future__ import annotations

import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parent

# Between these lines of `cli.md` is the table of options.
BEGIN, END = "<!-- options: docs/renew.py -->\n", "<!-- end -->\n"


def options_table() -> str:
    """The options that `--cfg` takes, as a table."""
    from pysmpi.options import OPTIONS

    rows = ["| option | default | meaning |", "| --- | --- | --- |"]
    for option in OPTIONS.values():
        default = f"`{option.default}`" if option.default else ""
        rows.append(f"| `{option.name}` | {default} | {option.help} |")
    rows.append("| `smpi/OPERATION` | | algorithm of a collective, as `--coll` |")
    return "\n".join(rows) + "\n"


def pages() -> dict[Path, str]:
    """The text of each page that is made from the code, in whole or in part."""
    from pysmpi import diagnostics

    path = DOCS / "cli.md"
    head, _, rest = path.read_text(encoding="utf-8").partition(BEGIN)
    tail = rest.partition(END)[2]
    return {
        DOCS / "diagnostics.md": diagnostics.page(),
        path: f"{head}{BEGIN}{options_table()}{END}{tail}",
    }


if __name__ == "__main__":
    sys.path.insert(0, str(DOCS.parent))
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
