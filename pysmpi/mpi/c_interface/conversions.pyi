from collections.abc import Callable
from typing import Any

def capsule(name: str, function: Callable[[Any], object], /) -> object: ...
