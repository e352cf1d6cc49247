"""Programs that show the figures of runs: TensorBoard, W&B, Trackio, or your own."""
