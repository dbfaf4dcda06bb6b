"""Input and output of pysmpi itself."""
