"""What each op means, in numpy: `evaluate.py` picks the function, the other files are families."""
