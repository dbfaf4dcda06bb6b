"""The intra-node models that come with pysmpi; `pysmpi.memory.transfer.models` finds them."""
