"""Base of the metadef ops: verification by the shape function, and the one way to build an op."""

from collections.abc import Sequence
from typing import Any

from metadef import ir
from metadef.diagnostics import MetadefError
from metadef.dialect import Constraint

from .attributes import attribute_of
from .dialect import MetadefDialect
from .shapes import Shaped, disagreement, shape_of
from .types import is_well_encoded

#: OpView's own members that a field would hide; such a field is read by `attributes.text` and such
_KEPT = ("name", "operands", "results", "attributes", "regions", "location", "context", "parent")

#: typed out here: an annotation in the class would make it a field of the op
_NO_CONSTRAINTS: tuple[Constraint, ...] = ()


class MetadefOp(MetadefDialect.Operation):  # type: ignore[name-defined]
    """Subclasses declare fields and `constraints`, and define `infer_results`.

    IRDL, which MLIR's Python-defined dialects are built on, gives all members of a variadic group
    one type. An op whose variadic operands differ in type sets `operand_groups` to the number of
    groups that they are spread over, one operand a group, and carries `operandSegmentSizes`
    (likewise `result_groups`); `build` and `segments` write it. Accessors go by position.
    """

    constraints = _NO_CONSTRAINTS
    operand_groups = 1
    result_groups = 1
    #: operands as declared; `_fields` has the groups while another thread loads the dialect
    _operand_fields = 0

    @classmethod
    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        operands, attributes, results, _ = ir.ext.partition_fields(cls._fields)
        cls._operand_fields = len(operands)
        if cls._ODS_OPERAND_SEGMENTS:
            cls._ODS_OPERAND_SEGMENTS = None
            _access_by_position(cls, operands, "operands")
        if cls._ODS_RESULT_SEGMENTS:
            cls._ODS_RESULT_SEGMENTS = None
            _access_by_position(cls, results, "results")
        for field in attributes:
            if field.name in _KEPT:
                delattr(cls, field.name)

    @classmethod
    def _emit_operation(cls) -> None:
        declared = cls._fields
        cls._fields = [part for field in declared for part in _spread(cls, field)]
        super()._emit_operation()
        cls._fields = declared

    def infer_results(self) -> list[Shaped]:
        """Return the results' shapes, which follow from operands and attributes.

        An op whose result type is its own to say (reshape, fill) checks it and returns it.

        Raises:
            MetadefError: operands or attributes break a constraint.
        """
        raise AssertionError(f"{self.operation.name} has no shape function")

    def verify_invariants(self) -> bool:
        with self.location:  # printing verifies too, in whatever context is current
            problem = self._problem()
        if problem is None:
            return True
        self.location.emit_error(f"'{self.operation.name}' op: {problem}")
        return False

    def _problem(self) -> str | None:
        results = self.operation.results
        for value in (*self.operation.operands, *results):
            type_ = value.type
            if isinstance(type_, ir.RankedTensorType) and not is_well_encoded(type_):
                return f"#metadef.dims must have an entry that fits for each dim, got {type_}"
        try:
            inferred = self.infer_results()
            declared = [shape_of(r) for r in results]
        except MetadefError as error:
            return str(error)
        except IndexError:
            return f"too few operands or results, got {len(self.operation.operands)} operands"
        if len(inferred) != len(declared):
            return f"expected {len(inferred)} results, got {len(declared)}"
        for d, i in zip(declared, inferred, strict=True):
            got = disagreement(d, i)
            if got is not None:
                name = self.operation.name.split(".")[-1]
                return f"{name}-result: the result type follows from the operands, got {got}"
        return None


def build(
    op: type[MetadefOp], operands: list[ir.Value], results: list[Shaped], **attributes: Any
) -> ir.Value:
    """Create an op at the insertion point and return its (first) result."""
    result: ir.Value = create(op, operands, [r.type for r in results], **attributes).results[0]
    return result


def create(
    op: type[MetadefOp],
    operands: list[ir.Value],
    results: list[ir.Type],
    regions: int = 0,
    **attributes: Any,
) -> ir.Operation:
    """Create an op at the insertion point."""
    made = {name: attribute_of(value) for name, value in attributes.items()}
    made.update(segments(op, [x.type for x in operands], results))
    created: ir.Operation = ir.Operation.create(
        op.OPERATION_NAME, results=results, operands=operands, attributes=made, regions=regions
    )
    return created.operation


def segments(
    op: type[MetadefOp], operands: Sequence[ir.Type], results: Sequence[ir.Type]
) -> dict[str, ir.Attribute]:
    """Return the segment attributes that an op with these operand and result types carries.

    Raises:
        MetadefError: more operands or results of different types than the op has groups for.
    """
    made: dict[str, ir.Attribute] = {}
    name = op.OPERATION_NAME
    if op.operand_groups > 1:
        single = op._operand_fields - 1
        sizes = [1] * single + _group_sizes(name, "operands", operands[single:], op.operand_groups)
        made["operandSegmentSizes"] = ir.DenseI32ArrayAttr.get(sizes)
    if op.result_groups > 1:
        sizes = _group_sizes(name, "results", results, op.result_groups)
        made["resultSegmentSizes"] = ir.DenseI32ArrayAttr.get(sizes)
    return made


def _group_sizes(name: str, what: str, types: Sequence[ir.Type], groups: int) -> list[int]:
    """Return one value a group; past the number of groups, neighbours of one type share one."""
    sizes = [1] * len(types)
    if len(types) > groups:
        sizes = []
        for i, type_ in enumerate(types):
            if i and type_ == types[i - 1]:
                sizes[-1] += 1
            else:
                sizes.append(1)
    if len(sizes) > groups:
        raise MetadefError(f"'{name}' takes at most {groups} {what} of different types")
    return sizes + [0] * (groups - len(sizes))


def _spread(cls: Any, field: Any) -> list[Any]:
    """Return the IRDL groups of a field: `operand_groups` of them for a variadic operand."""
    if field.variadicity != ir.ext.Variadicity.variadic:
        return [field]
    if isinstance(field, ir.ext.OperandDef) and cls.operand_groups > 1:
        make, groups = ir.ext.OperandDef, cls.operand_groups
    elif isinstance(field, ir.ext.ResultDef) and cls.result_groups > 1:
        make, groups = ir.ext.ResultDef, cls.result_groups
    else:
        return [field]
    return [make(f"{field.name}{i}", field.variadicity, field.constraint) for i in range(groups)]


def _access_by_position(cls: type, fields: list[Any], group: str) -> None:
    """Define accessors for fields of which one is variadic or optional."""
    single = ir.ext.Variadicity.single
    loose = [i for i, f in enumerate(fields) if f.variadicity != single]
    assert len(loose) == 1, f"{cls.__name__} has more than one variadic field among its {group}"
    at = loose[0]
    after = len(fields) - at - 1
    for i, field in enumerate(fields):
        optional = field.variadicity == ir.ext.Variadicity.optional
        if i == at:
            setattr(cls, field.name, _loose_property(group, at, after, optional))
        else:
            setattr(cls, field.name, _single_property(group, i if i < at else i - len(fields)))


def _single_property(group: str, i: int) -> property:
    return property(lambda op: getattr(op, group)[i])


def _loose_property(group: str, at: int, after: int, optional: bool) -> property:
    def values(op: Any) -> Any:
        members = list(getattr(op, group))
        found = members[at : len(members) - after]
        return found if not optional else found[0] if found else None

    return property(values)
