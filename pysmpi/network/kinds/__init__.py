"""The models that come with pysmpi, one file a family; `pysmpi.network.models` finds them."""
