"""What all tests share: a seeded generator and how hypothesis searches."""

import numpy as np
import pytest
from hypothesis import settings
from threadpoolctl import threadpool_limits

# The machines are shared and the first call of anything compiles or fills a cache.
settings.register_profile("pmordinal", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("pmordinal")


@pytest.fixture(autouse=True, scope="session")
def one_blas_thread():
    """Keep BLAS to one thread: the matrices are small and the cores may be busy."""
    with threadpool_limits(1, user_api="blas"):
        yield


@pytest.fixture
def rng() -> np.random.Generator:
    """Return a generator with a fixed seed."""
    return np.random.default_rng(20240607)
