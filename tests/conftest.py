"""What all tests share: a seeded generator and how hypothesis searches."""

import gc

import numpy as np
import pytensor
import pytest
from hypothesis import settings
from threadpoolctl import threadpool_limits

# The machines are shared and the first call of anything compiles or fills a cache.
settings.register_profile("pmordinal", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("pmordinal")

# PyTensor notes the stack at which each variable is made; no test reads it.
pytensor.config.traceback__limit = 0


@pytest.fixture(autouse=True, scope="session")
def seldom_collections():
    """Look for garbage less often: graphs are many small objects that live long."""
    before = gc.get_threshold()
    gc.set_threshold(50_000, 20, 50)
    gc.freeze()
    yield
    gc.unfreeze()
    gc.set_threshold(*before)


@pytest.fixture(autouse=True, scope="session")
def one_blas_thread():
    """Keep BLAS to one thread: the matrices are small and the cores may be busy."""
    with threadpool_limits(1, user_api="blas"):
        yield


@pytest.fixture
def rng() -> np.random.Generator:
    """Return a generator with a fixed seed."""
    return np.random.default_rng(20240607)
