"""The file system of a study: a ledger needs reliable locks, which network file systems do not have."""

import os
import sys
from pathlib import Path

from attnlab.errors import StudyError

MOUNTS = Path("/proc/mounts")
NETWORK = (
    "nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "gpfs", "glusterfs", "lustre", "beegfs", "fuse.sshfs",
    "fuse.glusterfs", "fuse.s3fs", "fuse.rclone", "fuse.ceph", "fuse.gcsfuse",
)  # fmt: skip
"""File systems whose locks sqlite cannot trust."""


def refuse_network(path: Path) -> None:
    """Refuse a folder on a network file system, where a ledger may be corrupted."""
    if (kind := _find_file_system(path)) in NETWORK:
        raise StudyError(
            f"{path.parent} is on a network file system ({kind}), whose locks sqlite cannot trust; give --out a folder "
            "on a local disk, and copy the study when it has ended"
        )


def _find_file_system(path: Path) -> str:
    """Return the kind of file system that a path is on; an empty string on systems other than Linux."""
    if sys.platform != "linux" or not MOUNTS.exists():
        return ""
    place = os.path.realpath(path.parent)
    best, kind = "", ""
    for line in MOUNTS.read_text(encoding="utf-8", errors="replace").splitlines():
        _, mount, mount_kind, *_ = [*line.split(), "", "", ""]
        mount = mount.replace("\\040", " ")
        if (place == mount or place.startswith(mount.rstrip("/") + "/")) and len(mount) >= len(best):
            best, kind = mount, mount_kind
    return kind
