"""How `vectorize` turns linalg on memrefs into loops of vectors.

Read in this order: `stage.py` (what a structured op is), `grouping.py` (which share a nest),
`schedule.py` (which dim becomes lanes, which rows, in what blocks), `nest.py` (tasks over threads),
`block.py` (one register block), `body.py` (the scalar body on vectors), `access.py` (addresses).
"""
