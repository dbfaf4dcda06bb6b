"""The command line `pysmpi`, with one file for each subcommand."""
