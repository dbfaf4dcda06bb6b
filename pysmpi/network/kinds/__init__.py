"""The models that come with pysmpi, one file for each family."""
