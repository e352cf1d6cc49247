"""Which of many similar cases `make test` runs; `make soak` runs all of them."""

import os

IS_SOAK = "ATTNLAB_SOAK" in os.environ


def is_sampled(*numbers: int) -> bool:
    """Tell whether a case with these numbers (of its mechanism, its model, …) is run: every third one, crosswise."""
    return IS_SOAK or sum(numbers) % 3 == 0
