"""Data sets that need no network and no file: prose, questions, and the generated probes."""
