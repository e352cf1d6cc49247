"""Many runs: plan, execute, ledger, analysis; and `integrity`, which examines anybody's result table."""
