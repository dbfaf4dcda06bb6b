"""The memory of many ranks in huge pages; `huge_pages.c` says why."""

def install() -> None:
    """From now on, put new objects and stacks of this process into huge pages."""
