"""The command line `pysmpi`: a file a subcommand."""
