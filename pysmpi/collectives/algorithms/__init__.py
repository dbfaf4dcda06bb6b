"""The algorithms: a module or two an operation, found by the registry when it is first asked."""
