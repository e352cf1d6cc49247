"""Tokenizers: loaded, built from a vocabulary, or trained; and the properties that batches need."""
