"""The verbs of the `attnlab` command; nothing else in attnlab imports this room.

A verb's module loads neither torch nor any other room when imported, so that `attnlab --help` answers at once;
what a verb needs besides stands in modules that it imports when it runs.
"""

from attnlab.cli.verbs import main

__all__ = ["main"]
