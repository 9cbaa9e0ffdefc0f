"""Links: the distributions of the noise on the latent function, by name."""

from pmordinal.links.base import Interval, Link
from pmordinal.links.cloglog import CLogLog
from pmordinal.links.logit import Logit
from pmordinal.links.probit import Probit
from pmordinal.registry import Registry

LINKS: Registry[Link] = Registry("link")
for _link in (Probit(), Logit(), CLogLog()):
    LINKS.add(_link.name, _link)


def get_link(link: str | Link) -> Link:
    """Return the link of that name; a `Link` is returned as it is.

    Examples
    --------
    >>> get_link("logit")
    Logit()
    """
    return link if isinstance(link, Link) else LINKS[link]


__all__ = ["LINKS", "CLogLog", "Interval", "Link", "Logit", "Probit", "get_link"]
