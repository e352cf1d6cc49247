"""Rows of a token file in a seeded order, masked and batched."""
