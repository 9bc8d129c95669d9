# SPDX-License-Identifier: GPL-3.0-or-later
"""A rank of a run through PyTorch's schedule runtime, which executes the order as it stands; nothing is inferred anew.
Ranks of schedules that update weights within the step (versionedrun.py) begin alike.
"""

import contextlib
import datetime
import gc
import inspect
import logging
import os
import re
import tempfile
import time

from .activities import StepProfile
from .allocated import StepMemory
from .counted import CountedCopies
from .errors import Refused
from .record import Clock, DeviceClock, Recorder, clock_offset
from .replicas import OneCopy, Replicas, plain_name, whole

WITHOUT_PROFILER = 3  # number of steps, to measure what the profiler costs


def ranks_of_environment():
    for rank, size, local in (("RANK", "WORLD_SIZE", "LOCAL_RANK"), ("SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID")):
        if rank in os.environ and size in os.environ:
            return int(os.environ[rank]), int(os.environ[size]), int(os.environ.get(local, os.environ[rank]))
    raise Refused("RANK", "is not set", "start this with `pipewright run --backend torch`, torchrun or srun")


class Watched:
    """A transfer whose wait is recorded."""

    def __init__(self, work, recorder, label):
        self._work, self._recorder, self._label = work, recorder, label

    def wait(self, *arguments):
        begin = self._recorder.border()
        result = self._work.wait(*arguments)
        self._recorder.wait(*self._label, begin)
        return result

    def __getattr__(self, name):
        return getattr(self._work, name)


class Runner:
    def __init__(self, job, stream, meet):
        import torch
        import torch.distributed as dist
        from torch.distributed import pipelining
        from torch.distributed.pipelining import schedules

        from . import stages

        self.torch, self.dist, self.job, self.stream = torch, dist, job, stream
        self.schedules, self.pipelining = schedules, pipelining
        self.rank, self.ranks, self.local = ranks_of_environment()
        if self.ranks != job["ranks"] * job["replicas"]:
            copies = f" in {job['replicas']} copies" if job["replicas"] > 1 else ""
            raise Refused("ranks", f"{self.ranks} processes, and the design has {job['ranks']} devices{copies}", "start as many")
        self.design_rank = self.rank % job["ranks"]
        # The program reports an error once, without the whole schedule.
        logging.getLogger("torch.distributed.pipelining").setLevel(logging.CRITICAL)
        self.device = self._device()
        self.stages_of = stages
        stream.line(at="building the stages")
        self.source = stages.source_of(job)
        if job["synthetic"]:  # so that sleeping block threads and transfer threads wake up in time
            try:
                os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
            except (AttributeError, OSError):
                pass  # not allowed on this system
        self._connect(meet)
        # Not for wrappers of copies, which exchange memory that no block allocates, and not for stand-ins.
        watched = self.device.type == "cpu" and not self.replicas.wrapped and not job["synthetic"]
        self.memory = StepMemory(torch) if watched else None
        clock = DeviceClock(torch, self.device) if self.device.type == "cuda" else Clock(self.memory)
        offset, uncertainty = clock_offset(torch, dist, self.talk, self.rank, self.ranks)
        self.recorder = Recorder(stream, clock, offset)
        self.recorder.report()
        self.clock, self.offset = clock, offset
        name = torch.cuda.get_device_name(self.device) if self.device.type == "cuda" else f"rank {self.rank}, CPU"
        stream.line(hello=self.rank, device=self.device.type, name=name, torch=torch.__version__,
                    offset=offset, uncertainty=uncertainty)
        self._label = None
        self.profile = StepProfile(torch, self.device, stream, offset) if job.get("profile") else None

    def _device(self):
        wanted, gpus = self.job["device"], self.torch.cuda.device_count()
        if wanted == "host" or wanted == "auto" and gpus <= self.local:
            return self.torch.device("cpu")
        if gpus <= self.local:
            raise Refused("--device", f"rank {self.rank} needs GPU {self.local}, and PyTorch finds {gpus}",
                          "use --device host, or fewer ranks on this machine")
        self.torch.cuda.set_device(self.local)
        return self.torch.device("cuda", self.local)

    def _connect(self, meet):
        self.stream.line(at="connecting the ranks")
        # The program's own deadline must come first, as the program knows where each rank is.
        timeout = datetime.timedelta(seconds=10 + 2 * self.job["deadline_s"])
        backend = "nccl" if self.device.type == "cuda" else "gloo"
        self.backend, self.timeout = backend, timeout
        where = {"init_method": f"file://{meet}"} if meet else {}
        self.dist.init_process_group(backend, rank=self.rank, world_size=self.ranks, timeout=timeout, **where)
        # For barriers, objects and clocks; values of stages go another way.
        self.talk = self.dist.new_group(backend="gloo", timeout=timeout)
        self.replicas = OneCopy()
        if self.job["replicas"] > 1:
            kind = Replicas if self.job["zero"] is None else CountedCopies
            self.replicas = kind(self.torch, self.dist, self.job, self.rank, self.device, backend, timeout)

    def build(self, split):
        """This rank's stages, on its device. Rank 0 looks at the whole module before; `split`: also at whether its
        backwards can be split. Returns the stages whose backwards cannot, or recompute: for a backward in parts,
        torch.utils.checkpoint would recompute a layer for each part."""
        mine = [stage for stage, rank in enumerate(self.job["device_of_stage"]) if rank == self.design_rank]
        layers = self.source.layers()
        self.modules = self.source.stages(mine, layers)
        for note in self.source.notes if self.rank == 0 else []:
            self.stream.line(note=note)
        unsplittable = set() if self.job["synthetic"] else self._look(layers, split)
        recomputing = self.source.recompute(self.modules)
        for stage in mine:
            self.modules[stage].to(self.device)
        return unsplittable | recomputing

    def _look(self, layers, split):
        """Rank 0 looks; the others hear that it goes on, part by part, and then what it found."""
        told = [None]
        if self.rank != 0:
            while told[0] is None:
                self.dist.broadcast_object_list(told, src=0, group=self.talk)
            return told[0]
        from .look import Looker

        inputs, targets = self.source.batch(0)
        first = [value.chunk(self.job["microbatches"])[0].to(self.device) for value in (*inputs, targets)]
        looker = Looker(self.device, first[:-1], first[-1], self.source.loss(), "layer" if layers else "stage", split)
        looker.see_all(layers or [])
        count = len(layers) if layers else self.job["stages"]
        for number in looker.through(self.source.parts(layers), count):
            self.stream.line(at=f"a look at the module, {looker.found.kind} {number}")
            self.dist.broadcast_object_list([None], src=0, group=self.talk)
        looker.found.refuse_ends(self.source.counts or [1] * count)
        self.stream.line(found=looker.found.lines())
        told[0] = self.source.unsplittable_stages(looker.found)
        self.dist.broadcast_object_list(told, src=0, group=self.talk)
        return told[0]

    def _sums_of_shared(self):
        """What sums the gradients of parameters that several stages hold."""
        from .shared import StageSums

        owners = self.job["device_of_stage"]
        on_one_rank = [one for one in self.source.tied if len({owners[stage] for stage in one.stages}) < len(one.stages)]
        if self.replicas.count > 1 and on_one_rank:
            raise Refused("--replicas", f"stages of one rank hold one parameter ({on_one_rank[0].text()}), which copies cannot "
                          "sum twice", "untie them, or take a family with one stage per device")
        return StageSums(self.dist, self.source.tied, owners, self.rank, self.job["replicas"], self.job["ranks"],
                         self.backend, self.timeout)

    def prepare(self):
        from .halves import run_whole_where_needed

        job = self.job
        unsplittable = self.build(split=any(re.search(r"\dI\d", order) for order in job["orders"].values()))
        mine = list(self.modules)
        self.sums = self._sums_of_shared()
        self.modules = self.replicas.join(self.source, self.modules, self.recorder)
        self.held = [p for module in self.modules.values() for p in module.parameters()]
        self.first, self.last = 0 in mine, job["stages"] - 1 in mine
        self.optimizers, known = {}, set()
        for stage in mine:
            parameters = [p for p in self.modules[stage].parameters() if p.requires_grad and p not in known]
            known.update(parameters)
            if parameters:
                self.optimizers[stage] = self.replicas.optimizer(self.source, parameters)
        pipeline_stages = []
        for stage in mine:
            made = self.pipelining.PipelineStage(self.modules[stage], stage, job["stages"], self.device,
                                                  group=self.replicas.pipeline)
            if self.device.type == "cpu" and hasattr(made, "_get_init_p2p_neighbors_ops"):
                made._get_init_p2p_neighbors_ops = lambda: []  # gloo connects by itself, but no rank to itself
            run_whole_where_needed(made, stage in unsplittable)
            self.replicas.watch(made)
            self._watch(made)
            pipeline_stages.append(made)
        loss = self.source.loss()

        def recorded_loss(output, target):
            value = loss(output, target)
            self.recorder.extend_last()
            if self.profile is not None:
                self.profile.block_ends()
            return value

        # The gradients' means are taken after the step: stages may hold one parameter.
        self.schedule = self.schedules._PipelineScheduleRuntime(pipeline_stages, job["microbatches"], loss_fn=recorded_loss,
                                                                scale_grads=False)
        with tempfile.NamedTemporaryFile("w", suffix=".csv", encoding="ascii", delete=False) as file:
            file.write(job["orders"][self._order_format()])
        try:
            self.schedule._load_csv(file.name, format="compute_comms")
        finally:
            os.unlink(file.name)
        self._watch_transfers()

    def _order_format(self):
        if hasattr(self.schedules, "WAIT_SEND_F"):
            return "pytorch-comms-csv"
        if hasattr(self.schedules, "REDUCE_GRAD"):
            return "pytorch-2.14-comms-csv"
        raise Refused("torch", f"version {self.torch.__version__} does not reduce gradients in the order that it is given",
                      "use PyTorch 2.10 or later")

    def _watch(self, stage):
        """Records each block that the runtime calls, from the moment when its inputs are there."""
        recorder, index = self.recorder, stage.stage_index
        forward, backward, weight = stage.forward_one_chunk, stage.backward_one_chunk, stage.backward_weight_one_chunk
        seen = {}

        def timed(op, microbatch, call):
            recorder.at = f"{op}{index}.{microbatch}"
            recorder.within = [op, index, microbatch]
            begin = recorder.border()
            pace = self.source.pace(op, index)
            if self.profile is not None:
                self.profile.block_begins(op, index, microbatch)
            started = time.monotonic_ns()
            with self.memory.block(op, index, microbatch) if self.memory is not None else contextlib.nullcontext():
                result = call()
            if pace is not None:
                if self.device.type == "cuda":
                    self.torch.cuda.synchronize(self.device)
                self.stages_of.sleep_until(started + pace)
            if self.profile is not None:
                self.profile.block_ends()
            recorder.block(op, index, microbatch, begin)
            recorder.within = None
            return result

        def forward_one_chunk(microbatch, *arguments, **named):
            self.source.draws(self.rows, index, microbatch)
            output = timed("F", microbatch, lambda: forward(microbatch, *arguments, **named))
            tensors = output if isinstance(output, (tuple, list)) else (output,)
            shapes = tuple(tuple(each.shape) for each in tensors if isinstance(each, self.torch.Tensor))
            if seen.setdefault("shapes", shapes) != shapes:
                raise Refused(f"F{index}.{microbatch}", f"the output has the shape {shapes}, and before {seen['shapes']}",
                              "PyTorch's pipeline hands on values of one shape: pad the batch")
            return output

        def backward_one_chunk(microbatch, loss=None, full_backward=True, **named):
            result = timed("B" if full_backward else "I", microbatch,
                           lambda: backward(microbatch, loss=loss, full_backward=full_backward, **named))
            if loss is not None and full_backward and not loss._is_view():
                loss.detach_()  # the schedule keeps the loss, and with it the rest of the graph: the stage's input
            return result

        def backward_weight_one_chunk(microbatch, *arguments, **named):
            return timed("W", microbatch, lambda: weight(microbatch, *arguments, **named))

        stage.forward_one_chunk, stage.backward_one_chunk = forward_one_chunk, backward_one_chunk
        stage.backward_weight_one_chunk = backward_weight_one_chunk
        for name, what in (("get_fwd_recv_ops", "F"), ("get_bwd_recv_ops", "B")):
            original = getattr(stage, name)

            def labelled(microbatch, original=original, what=what):
                ops = original(microbatch)
                self._label = (what, index, microbatch)
                return ops

            setattr(stage, name, labelled)

    def _watch_transfers(self):
        start = self.schedules._batch_p2p

        def batch_p2p(ops, *arguments, **named):
            label, self._label = self._label, None
            works = start(ops, *arguments, **named)
            return works if label is None else [Watched(work, self.recorder, label) for work in works]

        self.schedules._batch_p2p = batch_p2p

    def _step(self, number):
        """Runs the schedule once. Returns its begin and, on the rank with the last stage, the microbatches' losses."""
        job = self.job
        self.rows, losses = self._rows_of(number), []
        inputs, targets = self.source.batch(self.rows)
        arguments = {"target": targets.to(self.device), "losses": losses} if self.last else {}
        if "return_outputs" in inspect.signature(self.schedule.step).parameters:
            arguments["return_outputs"] = False
        self.dist.barrier(group=self.talk)
        begin = time.monotonic_ns()
        self.recorder.begin_step()
        if self.memory is not None:
            self.memory.begin()
        self.schedule.step(*([value.to(self.device) for value in inputs] if self.first else []), **arguments)
        self.replicas.finish_sums()
        self._take_means()
        self.sums.sum(self.modules, self.recorder)
        return begin, losses

    def _take_means(self):
        """Over the step's microbatches, of all copies that were summed; of what stages of this rank share, once."""
        for parameter in {p for module in self.modules.values() for p in module.parameters()}:
            if parameter.grad is not None:
                parameter.grad.div_(self.job["microbatches"] * self.replicas.divisor)

    def _timed_step(self, number, profiled=True):
        """As _step(); also tells the profiler, if there is one, how long the step took."""
        begin, losses = self._step(number)
        if self.profile is not None:
            if self.device.type == "cuda":
                self.torch.cuda.synchronize(self.device)
            self.profile.step_took(time.monotonic_ns() - begin, profiled)
        return begin, losses

    def _rows_of(self, step):
        """The number that batch() gets: every copy has its own rows."""
        return step * self.replicas.count + self.replicas.number

    def _count_memory(self):
        if self.memory is not None:
            self.memory.count(self.held, self.modules.values(), self.optimizers.values())

    def _forget_gradients(self):
        """Zeroes the gradients. They stay allocated, as the design counts them; copies that share them out need them to be
        gone."""
        for module in self.modules.values():
            module.zero_grad(set_to_none=self.replicas.frees_gradients)

    def _hand_on(self):
        """What an update would hand on to the other copies, where there was none."""
        for stage, optimizer in self.optimizers.items():
            self.replicas.updated(stage, optimizer)

    def run(self):
        job, torch, recorder = self.job, self.torch, self.recorder
        self.stream.line(at="the first step, which finds out shapes and connects; it is not recorded")
        recorder.at = "the first step, before its first block"
        state = torch.get_rng_state()
        self._step(0)
        self._forget_gradients()
        if self.memory is not None:  # with allocated gradients, as in every later step
            self.replicas.watched = True
            with self.memory.watching():
                self._step(0)
            self.replicas.watched = False
            self._forget_gradients()
        self._hand_on()
        if self.profile is not None:
            self.stream.line(at="steps without the profiler, to say what it costs")
            for _ in range(WITHOUT_PROFILER):
                self._timed_step(0, profiled=False)
                self._forget_gradients()
                self._hand_on()
        torch.set_rng_state(state)
        gc.collect()
        gc.freeze()  # the collector skips the objects that imports made, within a step
        if self.device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(self.device)
        self.step = 0
        for step in range(job["steps"]):
            self.step = step
            last = step + 1 == job["steps"]
            before = self._parameters() if last and job["check_gradients"] else None
            recorder.on = True
            self._count_memory()
            if self.profile is not None:
                self.profile.begin()
            begin, losses = self._timed_step(step)
            if last and job["check_gradients"]:
                recorder.on = False
                gradients = self._gradients()
                recorder.on = True
            for stage, optimizer in self.optimizers.items():
                mark = recorder.border()
                if self.profile is not None:
                    self.profile.block_begins("U", stage, 0)
                optimizer.step()
                if self.profile is not None:
                    self.profile.block_ends()
                recorder.block("U", stage, 0, mark)
                self.replicas.updated(stage, optimizer)
            recorder.on = False
            if self.device.type == "cuda":
                torch.cuda.synchronize(self.device)
            end = time.monotonic_ns()
            self._forget_gradients()
            mean = float(sum(loss.detach() for loss in losses) / len(losses)) if losses else None
            if self.profile is not None:
                self.profile.end(step)
            recorder.end_step(step, begin, end, mean)
        if self.profile is not None:
            self.profile.cost()
        self._count_memory()
        if self.clock.peak() is not None:
            self.stream.line(peak=self.clock.peak())
        if job["check_gradients"]:
            self._check(before, gradients)
        self.stream.line(done=True)

    def _named(self, value):
        return {stage: {plain_name(name): value(parameter) for name, parameter in module.named_parameters()}
                for stage, module in self.modules.items()}

    def _parameters(self):
        return self._named(lambda parameter: whole(parameter.detach()).to("cpu", copy=True))

    def _gradients(self):
        return self._named(lambda parameter: None if parameter.grad is None else whole(parameter.grad).to("cpu", copy=True))

    def _check(self, before, gradients):
        from . import check

        self.stream.line(at="comparing the gradients with the whole module's")
        gathered = [None] * self.ranks if self.rank == 0 else None
        first = self.rank < self.job["ranks"]  # the copies hold the same values
        self.dist.gather_object((before, gradients) if first else ({}, {}), gathered, group=self.talk, dst=0)
        if self.rank == 0:
            self.stream.line(gradients=check.against_whole_module(self, gathered))
