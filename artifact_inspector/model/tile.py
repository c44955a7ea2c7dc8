"""The shape of a load, a product or a store."""

from __future__ import annotations


class Tile(str):
    """An operation and its shape: `load 128×32`, `dot 128×32×32`.

    Example:
        >>> tile = Tile("dot 128×32×16")
        >>> tile.is_dot, tile.shape, tile.extents
        (True, '128×32×16', (128, 32, 16))
    """

    __slots__ = ()

    @property
    def is_dot(self) -> bool:
        """True for a product: rows, columns and depth."""
        return self.startswith("dot ")

    @property
    def shape(self) -> str:
        """The extents, separated by `×`."""
        return self.rpartition(" ")[2]

    @property
    def extents(self) -> tuple[int, ...]:
        """Elements along each axis."""
        return tuple(int(extent) for extent in self.shape.split("×") if extent.isdecimal())
