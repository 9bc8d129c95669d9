# SPDX-License-Identifier: GPL-3.0-or-later
"""Pipewright from Python: designs of pipeline-parallel schedules, see `pipewright.design`.

What is imported here needs nothing but the standard library and the program `pipewright`. `pipewright.run` and
`pipewright.profile`, which the program starts as `python -m`, need PyTorch.
"""

from .design import Comparison, Design, Fault, Prediction, Table, new, read, schedule, use_program
from .errors import Refused

__all__ = ["Comparison", "Design", "Fault", "Prediction", "Refused", "Table", "new", "read", "schedule", "use_program"]
