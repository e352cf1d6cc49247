"""Speed and memory of the kernels against eager PyTorch, SDPA and FlexAttention: `make bench`."""
