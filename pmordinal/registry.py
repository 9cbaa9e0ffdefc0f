"""A table from names that users may pass, such as engines and links, to the objects behind them."""

from collections.abc import Callable, Iterator, Mapping

from pmordinal.words import guess


class Registry[T](Mapping[str, T]):
    """Mapping from names to objects; the error for an unknown name lists those that exist.

    Parameters
    ----------
    kind : str
        What is registered, for error messages.

    Examples
    --------
    >>> colours = Registry("colour")
    >>> _ = colours.add("red", "#f00")
    >>> colours["red"]
    '#f00'
    >>> colours["blue"]
    Traceback (most recent call last):
        ...
    ValueError: unknown colour 'blue': choose one of 'red'
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._items: dict[str, T] = {}

    def add(self, name: str, item: T) -> T:
        """Register `item` under `name` and return it."""
        if name in self._items:
            raise ValueError(f"{self.kind} {name!r} is registered already")
        self._items[name] = item
        return item

    def register(self, name: str) -> Callable[[T], T]:
        """Decorate an object so that it is registered under `name`."""
        return lambda item: self.add(name, item)

    def __getitem__(self, name: str) -> T:
        """Return the object of that name; raise an error that lists the names if it is unknown."""
        if not isinstance(name, str) or name not in self._items:
            known = ", ".join(repr(key) for key in self._items)
            raise ValueError(
                f"unknown {self.kind} {name!r}: choose one of {known}{guess(name, self._items)}"
            )
        return self._items[name]

    def __contains__(self, name: object) -> bool:
        """Tell whether `name` is registered."""
        return name in self._items

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names in the order of registration."""
        return iter(self._items)

    def __len__(self) -> int:
        """Return how many names there are."""
        return len(self._items)
