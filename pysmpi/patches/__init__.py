"""Patches of libraries: one file for each, with the name of its top-level package."""
