"""The page of `attnlab watch` and the local server that serves it."""

from .watch_server import WatchServer

__all__ = ["WatchServer"]
