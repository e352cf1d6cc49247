"""A study as a TOML file states it: what it may say, how it is read, and what is wrong with it."""
