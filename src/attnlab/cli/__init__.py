"""The verbs of the `attnlab` command; no other room imports this one.

Importing a verb's module loads neither torch nor another room, so that `attnlab --help` answers at once: a verb imports
what it needs when it runs.
"""

from attnlab.cli.verbs import main

__all__ = ["main"]
