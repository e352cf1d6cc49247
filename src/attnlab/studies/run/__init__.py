"""The execution of runs: processes on this machine or on a cluster, and their outputs."""
