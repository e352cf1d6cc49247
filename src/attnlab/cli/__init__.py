"""The verbs of the `attnlab` command; nothing else in attnlab imports this room.

Modules here load neither torch nor any other room when imported, so that `attnlab --help` answers at once.
"""

from attnlab.cli.verbs import main

__all__ = ["main"]
