"""From a study to its runs: their ids, their inputs, and the audits of installed arms."""
