"""The statements about messages inside a node are true."""

import re
from pathlib import Path

from pysmpi.memory.transfer.models import memory_models
from pysmpi.platform.config import OPTIONS

DOCS = Path(__file__).parents[2] / "docs"
PAGES = ("explanation/memory.md", "papers/memory.md", "papers/lines.md", "papers/coherence.md")
TEXT = "\n".join((DOCS / page).read_text(encoding="utf-8") for page in PAGES)


def test_every_memory_model_and_every_option_is_described():
    for name in memory_models():
        assert f"`{name}`" in TEXT
    described = set(re.findall(r"`(?:--cfg )?(memory/[a-z-]+)", TEXT))
    known = {name for name in OPTIONS if name.startswith("memory/")}
    assert described <= known
    # docs/reference/cli.md has the options that few users need.
    assert known - described <= {"memory/model", "memory/first-chunk",
                                 "memory/single-copy-start", "memory/single-copy-page"}  # fmt: skip
