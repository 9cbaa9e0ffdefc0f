"""What matrices of n × n numbers cost, said before a fit starts."""

from collections.abc import Iterator
from contextlib import contextmanager

from pmordinal.engines import Engine
from pmordinal.errors import warn

MANY = 5000  # rows beyond which a fit with such matrices takes minutes
SECONDS = 1e-9  # of a whole fit, for each cubed row: two minutes at 5000 rows
MATRICES = 8  # of n × n numbers that are held at a time


def cost(n: int) -> str:
    """Return time and memory of a fit with matrices of n × n numbers, as text.

    Examples
    --------
    >>> cost(10_000)
    'some 17 minutes and 6.4 GB'
    """
    minutes, gigabytes = SECONDS * n**3 / 60, 8e-9 * MATRICES * n**2
    time = f"{minutes:.0f} minutes" if minutes < 120 else f"{minutes / 60:.0f} hours"
    return f"some {time} and {gigabytes:.2g} GB"


def warn_of_size(engine: Engine, n: int) -> None:
    """Warn where an engine that holds n × n matrices has many rows."""
    if engine.is_dense and n > MANY:
        warn(
            f"engine {engine.name!r} holds matrices of {n} × {n} numbers: a fit takes {cost(n)}. "
            "engine='inducing' takes time and memory in proportion to the rows"
        )


@contextmanager
def memory_for(engine: Engine, n: int) -> Iterator[None]:
    """Name the alternative where the memory is not enough."""
    try:
        yield
    except MemoryError as error:
        advice = "engine='inducing' needs less" if engine.is_dense else "take fewer rows, or Dask"
        raise MemoryError(
            f"the memory is not enough for engine {engine.name!r} and {n} rows: {advice}"
        ) from error
