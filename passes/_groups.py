"""Disjoint convex groups over the ops of one block: the data that fusion passes decide on.

A set of ops is convex when no path leaves it and comes back; only such a set can become one kernel.
Ancestors are kept as bit sets over op indices, so that the question "would this merge make a
cycle?" costs a few big-integer operations.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from metadef import ir

from ._buffers import owner_of


@dataclass(frozen=True)
class Node:
    """An op of the block and its neighbours, by index in program order.

    `producers[i]` is the index of the op that makes operand i, or None for a block argument.
    """

    op: ir.Operation
    name: str
    operands: tuple[ir.Value, ...]
    producers: tuple[int | None, ...]


class Groups:
    """Starts with each op a group of its own; `merge` joins two groups that stay convex."""

    def __init__(self, ops: Sequence[ir.OpView]) -> None:
        index = {op.operation: i for i, op in enumerate(ops)}
        self.nodes = [_node(op.operation, index) for op in ops]
        self.users: list[list[int]] = [[] for _ in ops]
        self.group_of = list(range(len(ops)))
        self._members: dict[int, list[int]] = {i: [i] for i in range(len(ops))}
        self._ancestors: dict[int, int] = {}
        self._bits: dict[int, int] = {}
        for i, node in enumerate(self.nodes):
            ancestors = 0
            for p in dict.fromkeys(p for p in node.producers if p is not None):
                self.users[p].append(i)
                ancestors |= self._ancestors[p] | self._bits[p]
            self._ancestors[i] = ancestors
            self._bits[i] = 1 << i

    def members(self, group: int) -> list[int]:
        """Return the ops of a group in program order."""
        return sorted(self._members[group])

    def size(self, group: int) -> int:
        return len(self._members[group])

    def input_count(self, ops: Collection[int]) -> int:
        """Return how many values the ops read that none of them makes."""
        return len(
            {
                value
                for i in ops
                for value, p in zip(self.nodes[i].operands, self.nodes[i].producers, strict=True)
                if p not in ops
            }
        )

    def producer_groups(self, group: int) -> set[int]:
        """Return the other groups whose results this one reads."""
        return {
            self.group_of[p]
            for i in self._members[group]
            for p in self.nodes[i].producers
            if p is not None and self.group_of[p] != group
        }

    def user_groups(self, group: int) -> set[int]:
        """Return the other groups that read this one's results."""
        return {
            self.group_of[u]
            for i in self._members[group]
            for u in self.users[i]
            if self.group_of[u] != group
        }

    def depends_on(self, group: int, ops: Collection[int]) -> bool:
        """Return whether a path runs from one of `ops`, none in the group, to the group."""
        return any(self._ancestors[group] >> op & 1 for op in ops)

    def can_merge(self, a: int, b: int) -> bool:
        """Return whether no path runs from one group to the other through a third."""
        return not self._has_detour(a, b) and not self._has_detour(b, a)

    def merge(self, a: int, b: int) -> int:
        """Join two groups, which `can_merge`; return the name of the union."""
        if len(self._members[a]) < len(self._members[b]):
            a, b = b, a
        for i in self._members[b]:
            self.group_of[i] = a
        self._members[a] += self._members.pop(b)
        self._bits[a] |= self._bits.pop(b)
        self._ancestors[a] = (self._ancestors[a] | self._ancestors.pop(b)) & ~self._bits[a]
        self._propagate(a)
        return a

    def in_order(self) -> Iterator[int]:
        """Yield the groups so that each comes after those it reads; ties in program order."""
        missing = {g: len(self.producer_groups(g)) for g in self._members}
        ready = [(min(self._members[g]), g) for g, count in missing.items() if not count]
        heapq.heapify(ready)
        done = 0
        while ready:
            _, group = heapq.heappop(ready)
            done += 1
            yield group
            for user in self.user_groups(group):
                missing[user] -= 1
                if not missing[user]:
                    heapq.heappush(ready, (min(self._members[user]), user))
        assert done == len(self._members), "the groups have a cycle"

    def _has_detour(self, source: int, target: int) -> bool:
        return any(
            self._ancestors[p] & self._bits[source]
            for p in self.producer_groups(target)
            if p != source
        )

    def _propagate(self, group: int) -> None:
        """Tell every descendant of a merged group about its new ancestors."""
        news = self._ancestors[group] | self._bits[group]
        pending = self.user_groups(group)
        while pending:
            user = pending.pop()
            if news & ~self._ancestors[user]:
                self._ancestors[user] |= news
                pending |= self.user_groups(user)


def _node(op: ir.Operation, index: dict[ir.Operation, int]) -> Node:
    operands = tuple(op.operands)
    owners = [owner_of(v) for v in operands]
    producers = tuple(None if owner is None else index.get(owner) for owner in owners)
    return Node(op, op.name, operands, producers)
