"""Elementary functions as arithmetic on vectors: each builds ops where the caller stands."""
