"""Custom random variables: a `Law` says how one is drawn and what its log density is.

``pm.CustomDist`` creates a class for each variable and registers it, with all that its functions refer to, for as long
as the process lasts. That would keep the data of every model ever built. Here all variables share one class. A law
that depends on data refers to an Op that does not own them (`pmordinal.model.ops.problem_op`); the variable does.
"""

import pymc as pm
import pytensor.tensor as pt
from pymc.distributions.custom import CustomSymbolicDistRV, dist_support_point
from pymc.distributions.distribution import _support_point
from pymc.distributions.shape_utils import _change_dist_size
from pymc.logprob.abstract import _logprob
from pymc.model.core import new_or_existing_block_model_access
from pymc.pytensorf import collect_default_updates
from pytensor import config
from pytensor.graph.basic import Constant
from pytensor.tensor.random.type import RandomType
from pytensor.tensor.random.utils import normalize_size_param

from pmordinal.model.ops.problem_op import ProblemOp, hold


class Law:
    """Distribution of a random variable, given its parameters.

    Laws are compared with each other, so a law with settings is a frozen dataclass. A law that depends on data has an
    Op, `of`, and never the data themselves.

    Attributes
    ----------
    name : str
        Name of the distribution in printed models.
    signature : str
        Core dimensions of the parameters and of the variable, as in NumPy's gufuncs.
    of : ProblemOp, optional
        Op that gives access to the data.
    """

    name: str
    signature: str
    of: ProblemOp | None = None

    def draw(self, *parameters, size):
        """Return an expression of a random draw; `size` is None or the leading dimensions."""
        raise NotImplementedError

    def logp(self, value, *parameters):
        """Return the log density at `value`."""
        raise NotImplementedError

    def support_point(self, rv, size, *parameters):
        """Return a starting point for samplers; None for PyMC's default, from those of the variables in `draw`."""
        return None


class LawRV(CustomSymbolicDistRV):
    """Op of a random variable with a `Law`: its inputs are size, parameters and generators."""

    law: Law

    def __init__(self, law: Law, inputs, outputs, **kwargs):
        self.law = law
        self._print_name = (law.name, rf"\operatorname{{{law.name}}}")
        super().__init__(inputs, outputs, **kwargs)

    def __eq__(self, other):
        """Tell whether graph and law are the same."""
        return super().__eq__(other) and self.law == other.law

    def __hash__(self):
        """Return a hash that is equal for equal variables."""
        return hash((super().__hash__(), self.law))

    def make_node(self, *inputs):
        """Return a node that keeps the data alive."""
        node = super().make_node(*inputs)
        return node if self.law.of is None else hold(node, self.law.of.problem)

    @classmethod
    def rv_op(cls, *parameters, law: Law, size=None, rng=None):
        """Return a random variable of this law."""
        size = normalize_size_param(size)
        inner_size = size if isinstance(size, Constant) and size.data is None else size.type()
        inner = [p.type() for p in parameters]
        message = "a law draws from .dist() variables, it adds none to the model"
        with new_or_existing_block_model_access(error_msg_on_access=message):
            drawn = law.draw(*inner, size=inner_size)
        if drawn.type.dtype.startswith("float"):  # drawn in double precision
            drawn = pt.cast(drawn, config.floatX)
        updates = collect_default_updates(inputs=[inner_size, *inner], outputs=(drawn,))
        rngs = list(updates)
        if rng is not None:
            if len(rngs) != 1:
                raise ValueError(f"{law.name} draws from {len(rngs)} generators: leave rng= out")
        marks = ["[rng]"] * len(rngs)
        taken, given = law.signature.split("->")
        op = cls(
            law,
            [inner_size, *inner, *rngs],
            [drawn, *updates.values()],
            extended_signature=f"{','.join(['[size]', taken, *marks])}->{','.join([given, *marks])}",
        )
        return op(size, *parameters, *(rngs if rng is None else [rng]))

    def rebuild_rv(self, *parameters, **kwargs):
        """Return a variable of this law with other inputs."""
        return self.rv_op(*parameters, law=self.law, **kwargs)


@_logprob.register(LawRV)
def _law_logp(op, values, size, *inputs, **_):
    return op.law.logp(values[0], *_parameters(inputs))


@_support_point.register(LawRV)
def _law_support_point(op, rv, size, *inputs):
    point = op.law.support_point(rv, size, *_parameters(inputs))
    return dist_support_point(op, rv, size, *inputs) if point is None else point


@_change_dist_size.register(LawRV)
def _resized(op, rv, new_size, expand):
    if expand:
        new_size = (*new_size, *tuple(rv.shape)[: rv.ndim - op.ndim_supp])
    new_size = pt.as_tensor(new_size, dtype="int64", ndim=1)
    return op.rebuild_rv(*op.dist_params(rv.owner), size=new_size)


def _parameters(inputs) -> list:
    return [x for x in inputs if not isinstance(x.type, RandomType)]


class ByLaw(pm.Distribution):
    """Adds a variable with a `Law` to the current model: ``ByLaw(name, law, *parameters)``."""

    rv_type = LawRV
    rv_op = LawRV.rv_op

    @classmethod
    def dist(cls, law: Law, *parameters, **kwargs):
        """Return the variable without a model."""
        return super().dist([pt.as_tensor(p) for p in parameters], law=law, **kwargs)
