"""Tokenizers: loaded, built from a vocabulary, or trained; and what batches need to know of them."""
