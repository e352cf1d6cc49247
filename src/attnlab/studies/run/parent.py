"""Start a module as a program that ends with the process that started it, also while it imports for seconds.

`python -m attnlab.studies.run.parent PID MODULE ARGUMENTS`, where PID is the process that started it. On systems other
than Linux, the program notices the death of that process when its standard input ends.
"""

import ctypes
import os
import runpy
import signal
import sys

PR_SET_PDEATHSIG = 1
"""Of Linux's prctl: the signal that this process gets when its parent dies."""


def end_with_parent(parent: int) -> None:
    """Let the system kill this process when its parent dies; end now if it is already dead."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


if __name__ == "__main__":
    end_with_parent(int(sys.argv[1]))
    del sys.argv[:2]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
