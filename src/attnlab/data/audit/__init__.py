"""Audits of a corpus: its size, its quality, and problems that would invalidate a comparison."""
