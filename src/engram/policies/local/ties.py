"""Equal cells of a large area, in the order of the spread design of its blocks."""

from __future__ import annotations

from engram.blocks import Array, as_array, field_of


class FieldTies:
    """Tells equal cells of a field apart (``blocks.TIE``)."""

    def broken(self, total: Array) -> Array:
        """A total without ties."""
        return as_array(field_of(total).with_ties())
