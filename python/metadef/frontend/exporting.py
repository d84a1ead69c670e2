"""The lock around torch.export, and around what runs a model as it does."""

from __future__ import annotations

import threading

#: torch.export keeps its modes in globals: two threads at once break each other
exporting = threading.RLock()
