"""From a study to its runs: ids, what they need from elsewhere, and audits of arms as they are installed."""
