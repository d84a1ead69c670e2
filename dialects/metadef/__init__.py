"""The metadef dialect: few orthogonal tensor operators with symbolic dims."""
