"""Formats of result files, each read as a header and rows of text."""
