"""Settings for all tests."""

from hypothesis import settings

settings.register_profile("gatas", deadline=None)  # machines pause, and the first call compiles
settings.load_profile("gatas")
