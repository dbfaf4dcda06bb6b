"""Replacements of functions that a program cannot tell from what they replace."""
