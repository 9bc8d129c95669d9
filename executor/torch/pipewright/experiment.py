# SPDX-License-Identifier: GPL-3.0-or-later
"""What weight policies do to the learning of a person's module: `pipewright experiment … --backend torch`.

    python -m pipewright.experiment JOB --record PLACE

All stages stand in this one process; the blocks run in an order that the designs' devices could take, and so every read,
every update and every prediction is what the ranks would do. A run of a design is one pass through all its updates. Update
u trains on the rows of `batch(u)`, cut into the microbatches of that design's updates, so that all designs see the same
rows in the same order. The file may also have `held_back()`, which returns inputs and targets that are never trained on.
"""

import os
import sys
import traceback

from .errors import Refused, no_torch
from .job import parser_of, read
from .record import Stream


def look_first(jobs, stream):
    """Looks at the module, and refuses the designs that cannot train it, before anything is trained."""
    import torch

    from .look import Looker
    from .shared import refuse_updates_amid_the_step, tied_over_stages
    from .stages import Source
    from .usermodule import partition

    runs = [{**jobs["common"], **run} for run in jobs["runs"]]
    source = Source(runs[0])
    layers = source.layers()
    inputs, targets = source.module.batch(0, runs[0]["seed"])
    first = [value.chunk(runs[0]["batch"])[0] for value in (*inputs, targets)]
    looker = Looker(torch.device("cpu"), first[:-1], first[-1], source.loss(), "layer" if layers else "stage", split=False)
    looker.see_all(layers or [])
    for _ in looker.through(source.parts(layers), len(layers) if layers else runs[0]["stages"]):
        pass
    stream.line(found=looker.found.lines())
    for run in runs if layers else []:
        if "versions" in run:
            counts, _ = partition(len(layers), run["stages"], run["layers_per_stage"], run["partition_of_module"], run["module"])
            refuse_updates_amid_the_step(tied_over_stages(layers, counts), run["name"], f"the rule {run['versions']['rule']}")


def main(arguments=None):
    options = parser_of("experiment", __doc__).parse_args(arguments)
    stream = Stream(options.record, 0)
    where = ""
    try:
        jobs = read(options.job)
        try:
            import torch
        except ImportError as error:
            raise no_torch(error) from error
        from .localrun import LocalRunner, plain

        torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
        look_first(jobs, stream)
        for number, run in enumerate(jobs["runs"]):
            where = run["name"]
            job = {**jobs["common"], **run}
            if "versions" not in job:
                job["versions"] = plain(job["stages"], job["updates"], job["batch"])
            job["versions"]["optimizer"] = None if job.get("any_optimizer") else job["optimizer"]
            runner = LocalRunner(job, lambda update, loss: stream.line(run=number, update=update, loss=loss))
            for note in runner.source.notes:
                stream.line(note=note)
            stream.line(run=number, report=runner.report())
        stream.line(done=True)
    except BaseException as error:
        cause = error
        while cause.__cause__ is not None and not isinstance(cause, Refused):
            cause = cause.__cause__
        if isinstance(cause, Refused):
            stream.line(failed=cause.what, where=cause.where or where, hint=cause.hint)
        else:
            stream.line(failed=f"{type(cause).__name__}: {cause}", where=where)
            if not isinstance(cause, KeyboardInterrupt):
                traceback.print_exception(type(error), error, error.__traceback__)
        sys.stderr.flush()
        os._exit(1)


if __name__ == "__main__":
    main()
