"""The pages of the documentation and their site: links, lengths, and how messages name them."""

from __future__ import annotations

import importlib.util
import io
import re
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
MOST_WORDS = 2000

# Where the files of the repository are, for README.md and for links that leave docs/.
FILES = "https://github.com/pysmpi/pysmpi/blob/main/"
RAW = "https://raw.githubusercontent.com/pysmpi/pysmpi/main/"


@pytest.fixture(scope="module")
def conf() -> ModuleType:
    specification = importlib.util.spec_from_file_location("conf", DOCS / "conf.py")
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def words(text: str) -> int:
    """The number of words that a reader reads: prose and tables, no blocks of code."""
    text = re.sub(r"^```.*?^```$|<!--.*?-->", "", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"\]\([^)]*\)", "]", text)
    return len(re.findall(r"[^\s|]*\w[^\s|]*", text))


def test_pages_of_the_path_are_short(conf: ModuleType) -> None:
    assert [name for name in conf.GENERATED if not any(DOCS.glob(f"{name}.md"))] == []
    long = {
        name.as_posix(): count
        for page in PAGES
        if not any(map((name := page.relative_to(DOCS).with_suffix("")).match, conf.GENERATED))
        if (count := words(page.read_text(encoding="utf-8"))) > MOST_WORDS
    }
    assert long == {}
    assert words("one `two` [three](four.md)\n```\nfive\n```\n| six | --- |\n") == 4


def test_messages_name_pages_that_exist() -> None:
    titles = {page.read_text(encoding="utf-8").partition("\n")[0] for page in PAGES}
    named = set()
    for path in [*(ROOT / "pysmpi").rglob("*.py"), *(ROOT / "pysmpi").rglob("*.yaml"),
                 *(ROOT / "pysmpi").rglob("*.json")]:  # fmt: skip
        text = path.read_text(encoding="utf-8").replace('\\"', '"')
        named |= set(re.findall(r"\bmanual\(['\"](.*?)['\"]\)|\bpage \"([^\"{]+)\"", text))
    named = {first or second for first, second in named}
    assert len(named) >= 4
    assert [title for title in named if f"# {title}" not in titles] == []


def test_messages_name_no_files_of_the_documentation() -> None:
    """An installation has no docs/; docstrings and comments are for readers of the source."""
    import ast

    for path in (ROOT / "pysmpi").rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        docstrings = {
            id(node.body[0].value)
            for node in ast.walk(tree)
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            and isinstance(node.body[0] if node.body else None, ast.Expr)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found = re.search(r"\bdocs/\w+", node.value)
                assert found is None or id(node) in docstrings, f"{path}:{node.lineno}"


def test_absolute_links_to_the_repository_lead_somewhere() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    # PyPI shows this file, without the others.
    assert re.findall(r"\]\((?!https:)(.*?)\)", readme) == []
    labels = re.findall(r"^\[(.*)\]: https:", readme, re.MULTILINE)
    assert len({label.lower() for label in labels}) == len(labels)
    prose = re.sub(r"^```.*?^```$", "", readme, flags=re.MULTILINE | re.DOTALL)
    prose = re.sub(r"^\[.*\]: .*$|`[^`]*`", "", prose, flags=re.MULTILINE)
    used = re.findall(r"(?<!!)\[([^\]]+)\](?!\()", prose)
    assert {" ".join(label.split()) for label in used} == set(labels)
    count = 0
    for page in [ROOT / "README.md", *PAGES]:
        text = page.read_text(encoding="utf-8")
        for start in (FILES, RAW):
            for target in re.findall(re.escape(start) + r"([^)#\s`\"]+)", text):
                assert (ROOT / target).exists(), f"{page.name}: {target}"
                count += 1
    assert count > 10


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::PendingDeprecationWarning")
def test_the_site_is_built_without_warnings(conf: ModuleType, tmp_path: Path) -> None:
    """With links, anchors and the navigation; a page that no list names is a warning.

    All pages have a plain theme, and the front page that of the site, which takes most of the time.
    """
    pytest.importorskip("sphinx", reason="needs the extra docs")
    from sphinx.application import Sphinx
    from sphinx.util.docutils import docutils_namespace

    plain = {"html_theme": "basic", "html_theme_options": {}}
    site = tmp_path / "site"
    for settings, files in ((plain, []), ({}, [str(DOCS / "index.md")])):
        warnings = io.StringIO()
        with docutils_namespace():
            app = Sphinx(DOCS, DOCS, site, tmp_path / "trees", "html", confoverrides=settings,
                         status=None, warning=warnings, freshenv=not files)  # fmt: skip
            app.build(filenames=files)
        assert warnings.getvalue() == ""
        front = (site / "index.html").read_text(encoding="utf-8")
        assert "reference/cli.html" in front
    index = (site / "searchindex.js").read_text(encoding="utf-8")
    assert "rendezv" in index
    assert conf.html_theme in front
    for colour, picture in (("light", "view.png"), ("dark", "view-dark.png")):
        (image,) = re.findall(rf"<img[^>]*\b_images/{picture}[^>]*>", front)
        assert f"only-{colour}" in image
