"""Settings every test shares."""

from hypothesis import settings

# Two workers on two cores, and kernels that compile on first use: a wall-clock deadline fails by chance.
settings.register_profile("attnlab", deadline=None)
settings.load_profile("attnlab")
