"""The training loop: updates, evaluations, checkpoints, and exact resume."""
