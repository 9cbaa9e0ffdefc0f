"""Links: the distributions that the noise may have, by name."""

from pmordinal.links.base import Interval, Link
from pmordinal.links.cloglog import CLogLog
from pmordinal.links.logit import Logit
from pmordinal.links.probit import Probit
from pmordinal.registry import Registry

LINKS: Registry[Link] = Registry("link")
for _link in (Probit(), Logit(), CLogLog()):
    LINKS.add(_link.name, _link)


def get_link(link: str | Link) -> Link:
    """Return the link of that name; a link itself passes through.

    Examples
    --------
    >>> get_link("logit")
    Logit()
    """
    return link if isinstance(link, Link) else LINKS[link]


__all__ = ["LINKS", "CLogLog", "Interval", "Link", "Logit", "Probit", "get_link"]
