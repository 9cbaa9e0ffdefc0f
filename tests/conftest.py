"""What all tests share: a seeded generator and how hypothesis searches."""

import numpy as np
import pytest
from hypothesis import settings

# The machines are shared and the first call of anything compiles or fills a cache.
settings.register_profile("pmordinal", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("pmordinal")


@pytest.fixture
def rng() -> np.random.Generator:
    """Return a generator with a fixed seed."""
    return np.random.default_rng(20240607)
