"""Data sets without a network or a file: prose, generated questions, and probes."""
