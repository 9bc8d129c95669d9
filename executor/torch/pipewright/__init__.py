# SPDX-License-Identifier: GPL-3.0-or-later
"""Pipewright from Python: designs of pipeline-parallel schedules, see `pipewright.design`.

What is imported here needs nothing but the standard library and the program `pipewright`, which a wheel brings. `pipewright.run` and
`pipewright.profile`, which the program starts as `python -m`, need PyTorch.
"""

from .calls import Fault, use_program
from .design import Design, explain, imported, new, plan, query, read, schedule, tables
from .errors import Refused
from .results import Comparison, Prediction, Table

__all__ = ["Comparison", "Design", "Fault", "Prediction", "Refused", "Table", "explain", "imported", "new", "plan", "query",
           "read", "schedule", "tables", "use_program"]
