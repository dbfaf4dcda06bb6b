"""The cost of a message between two hosts: a registry of models."""
