"""The checkers of pysmpi, one a file."""
