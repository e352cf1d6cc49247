"""A run made ready: its model, its weights at the start, its batches and its examples, from a `RunSpec`."""
