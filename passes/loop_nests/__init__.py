"""How `vectorize` turns linalg on memrefs into loops of vectors.

Read in this order: `stage.py` (what a structured op is), `grouping.py` (which share a nest),
`schedule.py` (which dim becomes lanes, which rows, in what blocks), `nest.py` (tasks over threads;
`boxes.py`: how large), `block.py` (one register block, of `cells.py`), `body.py` (the scalar body
on vectors), `memory.py` and `access.py` (addresses, loads and stores).
"""
