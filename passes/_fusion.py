"""Which ops share a kernel: the policy of `form-kernels`, in four steps over `Groups`.

1. `grow_epilogues`: an anchor takes the pointwise ops that follow it over the same iteration space.
2. `join_elementwise`: the remaining pointwise ops and views join along producer-consumer edges.
3. `take_prologues`: an anchor takes the elementwise group that feeds it, where reading it is cheap.
4. What is left is a kernel of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from metadef import ir
from metadef.dialects.metadef.types import dims_of
from metadef.symbolic import Dim

from ._groups import Groups

POINTWISE = "metadef.pointwise"
TRANSPOSE = "metadef.transpose"
UNPACK = "metadef.unpack"
VIEWS = frozenset({TRANSPOSE, "metadef.broadcast", "metadef.slice", UNPACK})
ELEMENTWISE = VIEWS | {POINTWISE}

#: anchors whose result may go through pointwise ops before it is stored
EPILOGUE_ANCHORS = frozenset(
    {
        "metadef.contraction",
        "metadef.conv",
        "metadef.conv_transpose",
        "metadef.attention",
        "metadef.softmax",
        "metadef.norm",
        "metadef.reduce",
        "metadef.pool",
        "metadef.resample",
        "metadef.take",
        "metadef.gather",
        "metadef.winograd_output",
    }
)
#: anchors that read a row once or twice: a producer of any cost may be computed while reading
ROW_ANCHORS = frozenset({"metadef.softmax", "metadef.norm", "metadef.reduce"})
#: anchors that read an element many times: only views and casts are free to repeat
REUSE_ANCHORS = frozenset({"metadef.contraction", "metadef.attention"})
#: `metadef.kernel` tells 32 operands apart by type
MAX_INPUTS = 32
#: anchors that read an element once, into a part of their result
ASSEMBLERS = frozenset({"metadef.concat", "metadef.pad"})
CONVS = frozenset({"metadef.conv", "metadef.conv_transpose"})


class Fusion:
    """Decides the groups of `ops`; `once` are the values that weights alone decide."""

    def __init__(self, ops: Sequence[ir.OpView], once: Collection[ir.Value], max_ops: int) -> None:
        self.groups = Groups(ops)
        self.max_ops = max_ops
        self._once = [all(r in once for r in op.operation.results) for op in ops]
        self._dims: dict[ir.Type, tuple[Dim, ...]] = {}

    def run(self) -> Groups:
        nodes = self.groups.nodes
        for i, node in enumerate(nodes):
            if node.name in EPILOGUE_ANCHORS:
                self.grow_epilogue(i)
        for i, node in enumerate(nodes):
            if node.name in ELEMENTWISE and self._is_elementwise(self.groups.group_of[i]):
                self.join_elementwise(i)
        for i, node in enumerate(nodes):
            if node.name in ROW_ANCHORS | REUSE_ANCHORS | ASSEMBLERS | CONVS:
                self.take_prologues(i)
        return self.groups

    def grow_epilogue(self, anchor: int) -> None:
        """Add to the anchor's kernel the pointwise ops that follow, as long as one value leaves it.

        Values with several uses (`x * sigmoid(x)`) are taken when all the uses are inside; a
        transpose ends the epilogue, because it says where the result is stored.
        """
        inside, pending, open_values = {anchor}, list[int](), {anchor}
        ended = False
        while not ended:
            candidates = {u for v in open_values for u in self.groups.users[v]} - inside
            if not candidates or len(inside) >= self.max_ops:
                return
            op = min(candidates)
            ended = self.groups.nodes[op].name == TRANSPOSE
            if not self._extends_epilogue(op, inside, open_values):
                return
            inside.add(op)
            pending.append(op)
            open_values = {v for v in open_values | {op} if not inside.issuperset(self._uses(v))}
            open_values.add(op)
            if open_values == {op}:
                if self._reads_back(pending, inside):
                    return
                for p in pending:
                    self._merge(self.groups.group_of[anchor], self.groups.group_of[p])
                pending.clear()

    def join_elementwise(self, op: int) -> None:
        """Join a pointwise op or view with the elementwise groups that feed it."""
        for producer in self._producers(op):
            group, own = self.groups.group_of[producer], self.groups.group_of[op]
            if group == own or not self._is_elementwise(group):
                continue
            if self._reads_in_place(producer, op) and self._fits(group, own):
                self._merge(group, own)

    def take_prologues(self, anchor: int) -> None:
        """Join an anchor with the elementwise groups that its operands come from."""
        node = self.groups.nodes[anchor]
        for position, producer in enumerate(node.producers):
            if producer is None:
                continue
            group, own = self.groups.group_of[producer], self.groups.group_of[anchor]
            if group == own or not self._is_elementwise(group) or not self._fits(group, own):
                continue
            if self._is_prologue(anchor, position, producer):
                self._merge(group, own)

    def _is_prologue(self, anchor: int, position: int, producer: int) -> bool:
        name = self.groups.nodes[anchor].name
        members = self.groups.members(self.groups.group_of[producer])
        only_use = self._uses(producer) == {anchor}
        if name in ROW_ANCHORS:
            # The residual sum is used again after the norm: the kernel then has two results.
            return position == 0 and (only_use or self.groups.nodes[producer].name == POINTWISE)
        alone = only_use and all(m == producer or self._is_inner(m) for m in members)
        if name in ASSEMBLERS or (name == "metadef.attention" and position == 3):
            return alone
        if name in CONVS:
            return alone and all(
                self._is_cast(m) or self.groups.nodes[m].name == UNPACK for m in members
            )
        return alone and all(
            self._is_cast(m) or self.groups.nodes[m].name in VIEWS for m in members
        )

    def _extends_epilogue(self, op: int, inside: set[int], open_values: set[int]) -> bool:
        node = self.groups.nodes[op]
        sources = [p for p in self._producers(op) if p in inside]
        if (
            self.groups.size(self.groups.group_of[op]) > 1
            or self.groups.input_count(inside | {op}) > MAX_INPUTS
        ):
            return False
        if self._once[op] != self._once[sources[0]]:
            return False
        if node.name == TRANSPOSE:
            return len(open_values) == 1 and self._uses(sources[0]) == {op}
        return node.name == POINTWISE and all(self._shape(s) == self._shape(op) for s in sources)

    def _reads_back(self, pending: list[int], inside: set[int]) -> bool:
        """Return whether an outside operand of the pending ops depends on the kernel."""
        outside = {p for op in pending for p in self._producers(op)} - inside
        return any(self.groups.depends_on(self.groups.group_of[p], inside) for p in outside)

    def _reads_in_place(self, producer: int, op: int) -> bool:
        """Return whether `op` reads each element of the producer once, and no wider than it is."""
        name = self.groups.nodes[op].name
        only_use = self._uses(producer) == {op}
        if name == POINTWISE:
            # A view that others read too is stored anyway; alone it keeps fewer groups apart.
            is_view = self.groups.nodes[producer].name in VIEWS
            return self._shape(producer) == self._shape(op) and (only_use or not is_view)
        if name == TRANSPOSE:
            return only_use
        return only_use and (self.groups.nodes[producer].name in VIEWS or self._is_cast(producer))

    def _fits(self, a: int, b: int) -> bool:
        members = {*self.groups.members(a), *self.groups.members(b)}
        return (
            len(members) <= self.max_ops
            and len({self._once[m] for m in members}) == 1
            and self.groups.input_count(members) <= MAX_INPUTS
            and self.groups.can_merge(a, b)
        )

    def _merge(self, a: int, b: int) -> None:
        if a != b:
            self.groups.merge(a, b)

    def _is_elementwise(self, group: int) -> bool:
        return all(self.groups.nodes[m].name in ELEMENTWISE for m in self.groups.members(group))

    def _is_inner(self, op: int) -> bool:
        """Return whether a value stays inside its group."""
        group = self.groups.group_of[op]
        return all(self.groups.group_of[u] == group for u in self.groups.users[op])

    def _is_cast(self, op: int) -> bool:
        node = self.groups.nodes[op]
        return node.name == POINTWISE and node.op.attributes["fn"].value == "cast"

    def _uses(self, op: int) -> set[int]:
        return set(self.groups.users[op])

    def _producers(self, op: int) -> list[int]:
        return list(dict.fromkeys(p for p in self.groups.nodes[op].producers if p is not None))

    def _shape(self, op: int) -> tuple[Dim, ...]:
        type_ = self.groups.nodes[op].op.results[0].type
        if type_ not in self._dims:
            self._dims[type_] = dims_of(type_)
        return self._dims[type_]
