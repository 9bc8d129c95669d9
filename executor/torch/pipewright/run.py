# SPDX-License-Identifier: GPL-3.0-or-later
"""One rank of `pipewright run --backend torch`; torchrun and Slurm may start it too.

    python -m pipewright.run JOB --record PLACE [--meet FILE]

JOB is what the program wrote: the order of blocks, sends and receives of every rank, the partition, the module. PLACE is a
folder, or the pipe of the process that started this one. Rank and number of ranks are torchrun's variables, or Slurm's.
"""

import os
import sys
import traceback

from .errors import Refused, lacks_memory
from .job import parser_of, read, with_pipelining
from .record import Stream
from .runner import ranks_of_environment


def consequence(error):
    """Whether an error only shows that another rank is gone."""
    text = str(error).lower()
    return any(word in text for word in ("connection closed by peer", "connection reset", "broken pipe", "timed out",
                                         "connectfullmesh", "socket", "connection refused"))


def hint_of(error):
    if lacks_memory(error):
        return "there is not enough memory: use fewer microbatches in flight, or smaller ones"
    if type(error).__name__ == "CheckpointError":  # of torch.utils.checkpoint
        return "let every layer do the same when the backward calls it again, or make the design with --recompute none"
    return ""


def main(arguments=None):
    parser = parser_of("run", __doc__)
    parser.add_argument("--meet", metavar="FILE", help="where the ranks of one machine find each other")
    options = parser.parse_args(arguments)
    try:
        rank = ranks_of_environment()[0]
    except Refused as error:
        parser.error(str(error))
    stream = Stream(options.record, rank)
    runner = None
    try:
        job = read(options.job)
        torch = with_pipelining(stream)
        torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
        if job.get("versions"):
            from .versionedrun import VersionedRunner as Kind
        else:
            from .runner import Runner as Kind
        runner = Kind(job, stream, options.meet)
        runner.prepare()
        runner.run()
    except BaseException as error:
        if runner is not None:
            try:
                runner.recorder.flush(getattr(runner, "step", 0))
            except Exception:  # a broken device cannot be read
                pass
        cause = error
        while cause.__cause__ is not None and not isinstance(cause, Refused):
            cause = cause.__cause__
        if isinstance(cause, Refused):
            stream.line(failed=cause.what, where=cause.where, hint=cause.hint)
            if not options.record.startswith("fd:"):  # nobody else tells the person who started this rank
                print(f"pipewright, rank {rank}: {cause}", file=sys.stderr)
        elif isinstance(error, KeyboardInterrupt):
            stream.line(failed="interrupted", where="", consequence=True)
        else:
            at = runner.recorder.at if runner is not None and hasattr(runner, "recorder") else ""
            stream.line(failed=f"{type(cause).__name__}: {str(cause).strip().splitlines()[0] if str(cause).strip() else ''}",
                        where=at, consequence=consequence(cause), hint=hint_of(cause))
            if not consequence(cause):
                traceback.print_exception(type(error), error, error.__traceback__)
        sys.stderr.flush()
        os._exit(1)  # threads of the communication library may wait for ranks that are gone


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # all reports are sent; some versions wait for each other at exit
