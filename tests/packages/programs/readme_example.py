"""Runs an example of a package's own documentation.

    readme_example.py FILE TEXT

The first block of code in FILE that contains TEXT runs as the main program. A block is fenced by
three backticks (Markdown), or indented below a line that ends with `::` or names the language
(reStructuredText).
"""

import re
import sys
import textwrap
from pathlib import Path

path, wanted = sys.argv[1:]
text = Path(path).read_text(encoding="utf-8")
fenced = re.findall(r"^```[^\n]*\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
indented = re.findall(
    r"^(?:\.\. code(?:-block)?:: *python|[^\n]*::) *\n\s*?\n((?:[ \t]+[^\n]*\n|[ \t]*\n)+)",
    text + "\n",
    re.MULTILINE,
)
example = next(block for block in [*fenced, *indented] if wanted in block)
del sys.argv[1:]
exec(compile(textwrap.dedent(example), path, "exec"))
