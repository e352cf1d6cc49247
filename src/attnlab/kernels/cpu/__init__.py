"""Compiled loops for the CPU: the C++ source, how it is built and loaded, and the scores of a tile."""
