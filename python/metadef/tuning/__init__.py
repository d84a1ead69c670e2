"""Search: measures other choices than the compiler's own, and writes what is better into a plan."""
