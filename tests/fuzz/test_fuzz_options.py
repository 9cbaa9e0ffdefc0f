"""Options of every public function: numbers, counts, names and seeds that make no sense."""

from hypothesis import strategies as st

from .calls import ALSO_NAMED, CALLS
from .outcome import examples, outcome
from .strategies import options


@st.composite
def calls(draw):
    """Return the name of a function and options for it, right or wrong."""
    name = draw(st.sampled_from(sorted(CALLS)))
    return name, draw(options(CALLS[name][1]))


@examples(50, 4000, calls())
def test_options(call):
    name, chosen = call
    outcome(lambda: CALLS[name][0](**chosen), *chosen, *ALSO_NAMED.get(name, ()))
