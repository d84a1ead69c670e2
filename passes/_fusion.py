"""Which ops share a kernel: the policy of `form-kernels`, in four steps over `Groups`.

1. `grow_epilogue`: an anchor takes the pointwise ops that follow it over the same iteration space.
2. `join_elementwise`: the remaining pointwise ops and views join along producer-consumer edges.
3. `take_prologues`: an anchor takes the elementwise group that feeds it.
4. What is left is a kernel of its own.

Here is what can be; whether 1 and 3 are done is a decision of `Boundaries` each time.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from metadef import ir
from metadef.dialects.metadef.shapes import shape_of
from metadef.dialects.metadef.types import dims_of
from metadef.symbolic import Dim, product

from ._boundaries import Boundaries, Boundary
from ._groups import Groups

POINTWISE = "metadef.pointwise"
TRANSPOSE = "metadef.transpose"
UNPACK = "metadef.unpack"
VIEWS = frozenset({TRANSPOSE, "metadef.broadcast", "metadef.slice", UNPACK})
ELEMENTWISE = VIEWS | {POINTWISE}
CAST = "cast"
CASTS_AND_VIEWS, CASTS_AND_UNPACKS = VIEWS | {CAST}, frozenset({CAST, UNPACK})

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
        "metadef.fourier_output",
    }
)
#: anchors that read a row once or twice: what costs more than that to compute stays in a tile
ROW_ANCHORS = frozenset({"metadef.softmax", "metadef.norm", "metadef.reduce"})
#: anchors that read an element many times: views and casts are free to repeat
REUSE_ANCHORS = frozenset({"metadef.contraction", "metadef.attention"})
#: `metadef.kernel` tells 32 operands apart by type
MAX_INPUTS = 32
#: anchors that read an element once, into a part of their result
ASSEMBLERS = frozenset({"metadef.concat", "metadef.pad"})
CONVS = frozenset({"metadef.conv", "metadef.conv_transpose"})
#: the operand of attention that is its mask
MASK = 3


class Fusion:
    """Decides the groups of `ops`; `once` are the values that weights alone decide."""

    def __init__(
        self,
        ops: Sequence[ir.OpView],
        once: Collection[ir.Value],
        max_ops: int,
        boundaries: Boundaries,
    ) -> None:
        self.groups = Groups(ops)
        self.max_ops = max_ops
        self.boundaries = boundaries
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
        """Add to the anchor's kernel the pointwise ops that follow, where that pays."""
        chain = self._epilogue(anchor)
        if chain and self._joins_behind(anchor, chain):
            for op in chain:
                self._merge(self.groups.group_of[anchor], self.groups.group_of[op])

    def _epilogue(self, anchor: int) -> list[int]:
        """Return the pointwise ops that can follow an anchor, as long as one value leaves them.

        Values with several uses (`x * sigmoid(x)`) are taken when all the uses are inside; a
        transpose ends the epilogue, because it says where the result is stored.
        """
        taken = list[int]()
        inside, pending, open_values = {anchor}, list[int](), {anchor}
        ended = False
        while not ended:
            candidates = {u for v in open_values for u in self.groups.users[v]} - inside
            if not candidates or len(inside) >= self.max_ops:
                break
            op = min(candidates)
            ended = self.groups.nodes[op].name == TRANSPOSE
            if not self._extends_epilogue(op, inside, open_values):
                break
            inside.add(op)
            pending.append(op)
            open_values = {v for v in open_values | {op} if not inside.issuperset(self._uses(v))}
            open_values.add(op)
            if open_values == {op}:
                if self._reads_back(pending, inside):
                    break
                taken += pending
                pending.clear()
        return taken

    def _joins_behind(self, anchor: int, chain: list[int]) -> bool:
        """Tell whether an epilogue is fused: a decision, but for what runs once."""
        nodes = self.groups.nodes
        boundary = Boundary(
            nodes[anchor].op, "epilogue", [nodes[i].op for i in chain], nodes[anchor].op.results[0]
        )
        pays = self.boundaries.epilogue_pays(boundary)
        return pays if self._once[anchor] else self.boundaries.joins(boundary, pays)

    def join_elementwise(self, op: int) -> None:
        """Join a pointwise op or view with the elementwise groups that feed it."""
        for producer in self._producers(op):
            group, own = self.groups.group_of[producer], self.groups.group_of[op]
            if group == own or not self._is_elementwise(group):
                continue
            if self._reads_in_place(producer, op) and self._misfit(group, own) is None:
                self._merge(group, own)

    def take_prologues(self, anchor: int) -> None:
        """Join an anchor with the elementwise groups that feed it, where that pays."""
        node = self.groups.nodes[anchor]
        for position, producer in enumerate(node.producers):
            if producer is None:
                continue
            group, own = self.groups.group_of[producer], self.groups.group_of[anchor]
            if group == own or not self._is_elementwise(group):
                continue
            if self._joins_before(anchor, position, producer):
                self._merge(group, own)

    def _joins_before(self, anchor: int, position: int, producer: int) -> bool:
        """Tell whether a prologue is fused: a decision, but for what runs once."""
        nodes = self.groups.nodes
        members = self.groups.members(self.groups.group_of[producer])
        only_use = self._uses(producer) == {anchor}
        unpacks = any(nodes[m].name == UNPACK for m in members)
        boundary = Boundary(
            nodes[anchor].op,
            f"prologue {position} {'' if only_use else 'read by others'}".rstrip(),
            [nodes[m].op for m in members],
            nodes[producer].op.results[0],
            stored=not only_use,
            missing=self._missing_before(anchor, position, producer),
            bound="an unpack is a view of panels" if unpacks else None,
        )
        pays = boundary.missing is None and self._pays_before(anchor, position, boundary)
        return pays if self._once[anchor] else self.boundaries.joins(boundary, pays)

    def _missing_before(self, anchor: int, position: int, producer: int) -> str | None:
        """Return what a prologue lacks to be fused, or None."""
        group, own = self.groups.group_of[producer], self.groups.group_of[anchor]
        members = self.groups.members(group)
        only_use = self._uses(producer) == {anchor}
        if self.groups.nodes[anchor].name in ROW_ANCHORS:
            # The residual sum is used again after the norm: the kernel then has two results.
            if position != 0 or not (only_use or self.groups.nodes[producer].name == POINTWISE):
                return "rows that nobody else reads, or pointwise ones"
        elif not only_use or not all(m == producer or self._is_inner(m) for m in members):
            return "a chain whose values nobody else reads"
        return self._misfit(group, own)

    def _pays_before(self, anchor: int, position: int, boundary: Boundary) -> bool:
        """Tell whether a prologue that can be fused costs less so."""
        node = self.groups.nodes[anchor]
        if node.name == "metadef.attention" and position == MASK:
            # Heads share a mask, and rows may.
            keys = shape_of(node.operands[1]).dims[-2]
            rows = shape_of(node.operands[0]).dims[:-1]
            return self.boundaries.prologue_pays(boundary, product([*rows, keys]))
        kept = CASTS_AND_UNPACKS if node.name in CONVS else CASTS_AND_VIEWS
        if node.name in ROW_ANCHORS | ASSEMBLERS or all(_is_among(op, kept) for op in boundary.ops):
            return True  # Nothing is computed again.
        # Other anchors have the chain computed whole before they start: as well in its own kernel.
        return node.name == "metadef.contraction" and self.boundaries.rows_pay(boundary)

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
        return only_use and _is_among(self.groups.nodes[producer].op, CASTS_AND_VIEWS)

    def _misfit(self, a: int, b: int) -> str | None:
        """Return what two groups lack to be one, or None."""
        members = {*self.groups.members(a), *self.groups.members(b)}
        if len(members) > self.max_ops:
            return f"a kernel of at most {self.max_ops} ops"
        if len({self._once[m] for m in members}) > 1:
            return "ops that all run once, or none of them"
        if self.groups.input_count(members) > MAX_INPUTS:
            return f"a kernel of at most {MAX_INPUTS} inputs"
        return None if self.groups.can_merge(a, b) else "no other kernel between the two"

    def _merge(self, a: int, b: int) -> None:
        if a != b:
            self.groups.merge(a, b)

    def _is_elementwise(self, group: int) -> bool:
        return all(self.groups.nodes[m].name in ELEMENTWISE for m in self.groups.members(group))

    def _is_inner(self, op: int) -> bool:
        """Return whether a value stays inside its group."""
        group = self.groups.group_of[op]
        return all(self.groups.group_of[u] == group for u in self.groups.users[op])

    def _uses(self, op: int) -> set[int]:
        return set(self.groups.users[op])

    def _producers(self, op: int) -> list[int]:
        return list(dict.fromkeys(p for p in self.groups.nodes[op].producers if p is not None))

    def _shape(self, op: int) -> tuple[Dim, ...]:
        type_ = self.groups.nodes[op].op.results[0].type
        if type_ not in self._dims:
            self._dims[type_] = dims_of(type_)
        return self._dims[type_]


def _is_among(op: ir.Operation, kinds: frozenset[str]) -> bool:
    """Tell whether an op is one of some kinds, of which a pointwise op is its `fn`."""
    return (op.attributes["fn"].value if op.name == POINTWISE else op.name) in kinds
