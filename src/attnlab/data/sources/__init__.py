"""Text and rows by name: files, folders, datasets of the hub, and cleaning."""
