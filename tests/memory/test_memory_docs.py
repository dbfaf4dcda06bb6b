"""The statements of docs/papers/memory.md about messages are true."""

import re
from pathlib import Path

from pysmpi.memory.transfer.models import memory_models
from pysmpi.platform.config import OPTIONS

TEXT = (Path(__file__).parents[2] / "docs" / "papers" / "memory.md").read_text(encoding="utf-8")


def test_every_memory_model_and_every_option_is_described():
    for name in memory_models():
        assert f"`{name}`" in TEXT
    described = set(re.findall(r"`(?:--cfg )?(memory/[a-z-]+)", TEXT))
    known = {name for name in OPTIONS if name.startswith("memory/")}
    assert described <= known
    # docs/reference/cli.md has the options that few users need.
    assert known - described <= {"memory/model", "memory/first-chunk",
                                 "memory/single-copy-start", "memory/single-copy-page"}  # fmt: skip
