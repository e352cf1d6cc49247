"""What a study costs before it is run: parameters, operations, memory, disk and time."""
