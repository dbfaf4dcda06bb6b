"""Random bad input for all readers and options: `python -m tests.fuzz --help`."""
