"""The base of all chapters: ranks, handles, constants, errors, attributes, info, status."""
