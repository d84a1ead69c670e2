"""`metadef.weight`: a tensor of the weight store."""

from metadef import ir
from metadef.dialect import Result, constraint
from metadef.dialects.metadef.attributes import text
from metadef.dialects.metadef.op import MetadefOp, build
from metadef.dialects.metadef.shapes import Shaped, shape_of, shape_of_type

C1 = constraint("weight-C1", "a weight has a name")
C2 = constraint("weight-C2", "a weight has static dims")


def infer(name: str, result: Shaped) -> Shaped:
    """Return the declared type: the store holds the tensor."""
    C1.check(bool(name), "''")
    C2.check(all(d.is_static for d in result.dims), str(result))
    return result


class WeightOp(MetadefOp, name="weight", traits=[ir.ext.Pure]):
    """The tensor that the module's weight store keeps under `name`; weights never enter the IR."""

    result: Result
    name: ir.StringAttr

    constraints = (C1, C2)

    def infer_results(self) -> list[Shaped]:
        return [infer(text(self, "name"), shape_of(self.results[0]))]


def weight(name: str, type: ir.Type) -> ir.Value:
    """Build a reference to the weight `name` of tensor type `type`."""
    return build(WeightOp, [], [infer(name, shape_of_type(type))], name=name)
