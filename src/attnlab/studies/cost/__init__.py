"""The cost of a study before it is run: parameters, operations, memory, disk and time."""
