"""The append-only database of a study."""
