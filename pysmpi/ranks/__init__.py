"""Ranks: their start, their program and their end."""
