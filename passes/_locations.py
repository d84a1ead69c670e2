"""Locations of what several ops became."""

from __future__ import annotations

from collections.abc import Iterable

from metadef import ir


def fuse_locations(locations: Iterable[ir.Location]) -> ir.Location:
    """Return one location for several, without repeats; the parts of fused ones count alone."""
    distinct: list[ir.Location] = []
    for location in locations:
        for part in location.locations if isinstance(location, ir.FusedLoc) else [location]:
            if part not in distinct:
                distinct.append(part)
    known = [part for part in distinct if not isinstance(part, ir.UnknownLoc)] or distinct
    return known[0] if len(known) == 1 else ir.Location.fused(known)
