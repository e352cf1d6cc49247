"""What trains: everything, the head, a prompt, a prefix or LoRA adapters; how many parameters, and what to store."""
