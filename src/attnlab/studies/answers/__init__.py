"""From a ledger to verdicts, and to what a study says before it has ended."""
