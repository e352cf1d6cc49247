"""Sources of text and rows by name: files, folders and datasets of the hub; and cleaning."""
