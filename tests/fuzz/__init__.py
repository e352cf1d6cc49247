"""Thousands of broken inputs through the real command line: `python -m tests.fuzz`."""
