"""Checks of a study's own runs; the ledger is enough, without data or models."""
