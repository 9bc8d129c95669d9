#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where PyTorch gathers the parameters of a file of computations alone (ZeRO 3), and what an export says of it.

    gathers.py PIPEWRIGHT

pytorch-comms-csv states every gather of a design. Of pytorch-csv PyTorch's own lowering places them: where that is elsewhere
the export warns, and with the arguments that the warning names the two are equal; where it is silent they are equal already.
Exits 77 and says why when the interpreter has no PyTorch 2.15.
"""

import os
import re
import subprocess
import sys
import tempfile

try:
    from torch.distributed.pipelining import schedules
    schedules._resolve_unshard_lookahead
except (ImportError, AttributeError) as error:
    print(f"skipped: {sys.executable} has no PyTorch 2.15 ({error})")
    sys.exit(77)

FAMILIES = (("interleaved-1f1b", "--chunks", "2"), ("interleaved-1f1b", "--chunks", "5"), ("zb-v",), ("dualpipe-v",))
SETTINGS = (("never", 0), ("never", 1), ("always", 0), ("always", 1), ("always", 2), ("always", 4))


def cells(path):
    with open(path, encoding="ascii") as file:
        return [[cell for cell in line.strip().split(",") if cell] for line in file]


def lowered(computations, **arguments):
    """A rank's computations, with UNSHARD where PyTorch puts it."""
    actions = schedules._add_unshard_reshard(computations, **arguments)
    return [str(action) for action in actions if action.computation_type != schedules.RESHARD]


def main():
    program, silent, named, stated = os.path.abspath(sys.argv[1]), 0, 0, 0
    with tempfile.TemporaryDirectory() as folder:
        run = lambda *words: subprocess.run([program, *words], cwd=folder, check=True, capture_output=True, text=True).stderr
        for family in FAMILIES:
            for reshard, prefetch in SETTINGS:
                run("new", *family, "--devices", "2", "--microbatches", "8", "--model", "llama-3-8b", "--cluster", "h100-node",
                    "--data-parallel", "2", "--zero", "3", "--reshard", reshard, "--prefetch", str(prefetch), "-o", "a.json", "--force")
                said = run("export", "a.json", "--to", "pytorch-csv", "-o", "a.csv", "--force")
                run("export", "a.json", "--to", "pytorch-comms-csv", "-o", "all.csv", "--force")
                ranks = [[schedules._Action.from_str(cell) for cell in row] for row in cells(os.path.join(folder, "a.csv"))]
                design = [[cell for cell in row if re.fullmatch(r"\(.*|\d+([FBIW]\d+|UNSHARD)", cell)]
                          for row in cells(os.path.join(folder, "all.csv"))]
                case = (*family, reshard, prefetch)
                assert ("PyTorch keeps 3" in said) == ([lowered(rank) for rank in ranks] != design), (case, said)
                found = re.search(r"max_active_stages=(\d+)(?:, unshard_lookahead=\(([\d, ]+)\))?", said)
                if found is None:
                    silent += "PyTorch keeps" not in said
                    stated += "states every gather" in said
                    continue
                ahead = [int(each) for each in found[2].split(",")] if found[2] else [int(found[1])] * len(ranks)
                got = [lowered(rank, max_active_stages=int(found[1]), unshard_lookahead=each) for rank, each in zip(ranks, ahead)]
                assert got == design, (case, found[0])
                named += 1
    assert silent and named and stated, (silent, named, stated)
    print(f"PyTorch gathers as {silent} designs do by itself, as {named} do with the arguments that the export names, and as "
          f"{stated} do by the stated gathers alone")


if __name__ == "__main__":
    sys.exit(main())
