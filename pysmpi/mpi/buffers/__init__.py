"""Memory of programs: how buffers are spelt, described, moved, packed and pickled."""
