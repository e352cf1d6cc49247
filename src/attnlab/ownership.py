"""Whether other users can change what attnlab writes into a folder, or choose where it is written."""

import os
import stat
from pathlib import Path

TRUST = "ATTNLAB_TRUST_FOLDERS"
"""Set to 1, an environment variable by which a user trusts everybody who can write to an output folder."""


def describe_risk(path: Path) -> str:
    """Return a sentence about an output folder, or a file in it, that other users control; empty if none can.

    A folder belongs to this user or to root, and is not writable for everybody unless it is sticky as /tmp is. A group
    is trusted, since many systems make every folder writable for it. Root is not asked whose a folder is: in a
    container, those that are mounted belong to somebody else.
    """
    if os.name != "posix" or os.environ.get(TRUST) == "1":
        return ""
    place = path
    try:
        while not place.exists() and place != place.parent:
            place = place.parent  # the folder is new; who can write to the one that it is made in can replace it
        status = place.stat()
    except OSError:
        return ""  # opening it reports the error
    advice = f"choose another folder, or set {TRUST}=1 if you trust everybody who can write there"
    if place == path and os.geteuid() != 0 and status.st_uid not in (0, os.geteuid()):
        return f"{place} belongs to another user (id {status.st_uid}), who can change what is written there; {advice}"
    if status.st_mode & stat.S_IWOTH and not status.st_mode & stat.S_ISVTX:
        return f"{place} can be written by every user; run 'chmod o-w {place}', {advice}"
    return ""
