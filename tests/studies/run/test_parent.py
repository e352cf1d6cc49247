"""A program that was started by a process ends with it, even while it imports."""

import os
import subprocess
import sys
import time
from pathlib import Path

SLOW = "import sys, time\nopen(sys.argv[1], 'w').close()\ntime.sleep(600)\n"
DRIVER = (
    "import os, subprocess, sys, time\n"
    "command = [sys.executable, '-m', 'attnlab.studies.run.parent', str(os.getpid()), 'slow', 'begun']\n"
    "child = subprocess.Popen(command)\n"
    "print(child.pid, flush=True)\n"
    "time.sleep(600)\n"
)


def is_alive(process: int) -> bool:
    """Tell whether a process is there and no zombie."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_server_that_still_imports_ends_with_its_driver(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(SLOW)
    driver = subprocess.Popen([sys.executable, "-c", DRIVER], stdout=subprocess.PIPE, cwd=tmp_path, text=True)
    assert driver.stdout is not None
    server = int(driver.stdout.readline())
    while not (tmp_path / "begun").exists():
        assert driver.poll() is None
        time.sleep(0.02)
    driver.kill()
    driver.communicate()
    while is_alive(server):  # a server that outlives its driver would sleep for ten minutes
        time.sleep(0.02)


def test_a_server_whose_driver_is_already_gone_does_not_begin() -> None:
    command = [sys.executable, "-m", "attnlab.studies.run.parent", str(os.getppid()), "this"]
    ended = subprocess.run(command, capture_output=True, check=False)
    assert (ended.returncode, ended.stdout) == (1, b"")
