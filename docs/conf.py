"""The site of these pages: `python -m sphinx -W docs build/site` (extra `docs`).

The pages are plain Markdown that also reads well without the site. The navigation is what
`index.md` lists, and a page that lists others below it, such as `reference/diagnostics.md`.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

project = "pysmpi"
copyright = "the authors of pysmpi"
extensions = ["myst_parser"]
exclude_patterns = ["build"]
myst_heading_anchors = 4
highlight_language = "none"
nitpicky = True
smartquotes = False  # `--option` in prose keeps both dashes

html_theme = "furo"
html_title = "pysmpi"
html_static_path = ["site"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_copy_source = False
html_theme_options = {
    "source_repository": "https://github.com/pysmpi/pysmpi/",
    "source_branch": "main",
    "source_directory": "docs/",
    "top_of_page_buttons": ["view"],
}

# Pages whose lists of pages are the navigation.
LISTS = ("index", "reference/diagnostics")

# Pages that programs write: docs/renew.py, the benchmarks, the studies and the lists of packages.
# They are looked up, not read, and may be longer than others.
GENERATED = (
    "papers/studies/*",
    "reference/algorithms",
    "reference/options",
    "reference/packages-results",
    "reference/python",
    "reference/rank-state",
    "reference/simgrid-options",
)


def navigation(app: object, docname: str, source: list[str]) -> None:
    """Add to a list of pages the lists that Sphinx reads: one for each heading."""
    if docname not in LISTS:
        return
    for section in re.split(r"^(?=## )", source[0], flags=re.MULTILINE):
        heading = re.match(r"## (.*)", section)
        pages = re.findall(r"^(?:- |\| )\[[^\]]*\]\(([\w/.-]+)\.md\)", section, re.MULTILINE)
        if pages:
            options = [":hidden:"]
            if docname == "index" and heading:
                options.append(f":caption: {heading[1]}")
            names = [posixpath.join("/", posixpath.dirname(docname), page) for page in pages]
            source[0] += "\n".join(["", "```{toctree}", *options, "", *names, "```", ""])


def pictures_in_the_dark(app: object, docname: str, source: list[str]) -> None:
    """Show `picture-dark.png` in place of `picture.png` where readers have a dark screen."""
    folder = (Path(__file__).parent / docname).parent

    def both(match: re.Match[str]) -> str:
        alternative, path = match.groups()
        dark = path.replace(".png", "-dark.png")
        if not (folder / dark).exists():
            return match[0]
        return "\n".join(
            f"```{{image}} {file}\n:alt: {alternative}\n:class: only-{colour}\n```\n"
            for file, colour in ((path, "light"), (dark, "dark"))
        )

    source[0] = re.sub(r"^!\[([^\]]*)\]\((\S+\.png)\)$", both, source[0], flags=re.MULTILINE)


def setup(app: object) -> None:
    app.connect("source-read", pictures_in_the_dark)  # type: ignore[attr-defined]
    app.connect("source-read", navigation)  # type: ignore[attr-defined]
