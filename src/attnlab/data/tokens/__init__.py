"""A corpus encoded into one token file that is mapped into memory."""
