"""Settings for all tests."""

import os

import torch
from hypothesis import settings

settings.register_profile("gatas", deadline=None)  # machines pause, and the first call compiles
settings.load_profile("gatas")

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"  # read when a kernel is defined, so before any is imported
