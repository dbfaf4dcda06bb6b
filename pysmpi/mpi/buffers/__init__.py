"""Memory of programs: parsing, describing, copying, packing and pickling buffers."""
