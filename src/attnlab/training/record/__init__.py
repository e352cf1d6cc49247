"""The files of a run: its lock, metrics, checkpoints and small JSON files. A killed process loses none of them."""
