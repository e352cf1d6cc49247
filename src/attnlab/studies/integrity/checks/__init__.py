"""Checks that need only a table: repeats, units, impossible values, outliers, budgets, summaries."""
