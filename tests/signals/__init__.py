"""Signals at random moments of commands: none is lost, no process is left."""
