# SPDX-License-Identifier: GPL-3.0-or-later
"""Measures a person's layers one by one on one device, for `pipewright profile --torch`.

    python -m pipewright.profile JOB --record PLACE

JOB says which module, device, and into how many microbatches batch(0) is cut. Forward, input gradient and weight gradient
are timed apart, split as PyTorch's pipelining splits them; the full backward too. A backward that cannot be split is
measured whole, as the I of a run; a stage of several layers runs whole if one of them does, so both are estimates. Bytes
are those of tensors that autograd keeps, each storage once, without parameters; what a layer finds kept already by the one
before it is that one's.
"""

import gc
import os
import resource
import statistics
import sys
import time
import traceback
import weakref
from typing import NamedTuple

from .allocated import DeviceMeter, HostMeter
from .errors import Refused
from .job import chosen_device, parser_of, read, with_pipelining
from .record import Stream

WARM_UP, FEWEST = 2, 5


class Kept:
    """Storages that autograd keeps, and which of them are still alive."""

    def __init__(self, torch, but_not):
        self._torch, self._but_not = torch, but_not
        self.sizes, self._alive = {}, {}

    def hooks(self):
        class Holder:
            __slots__ = ("tensor", "__weakref__")

        def pack(tensor):
            storage = tensor.untyped_storage()
            key = storage.data_ptr()
            holder = Holder()
            holder.tensor = tensor.detach()  # an output itself would refer back to the holder: a cycle
            if key not in self._but_not:
                self.sizes[key] = storage.nbytes()
                self._alive[key] = self._alive.get(key, 0) + 1
                weakref.finalize(holder, self._release, key)
            return holder

        return self._torch.autograd.graph.saved_tensors_hooks(pack, lambda holder: holder.tensor)

    def _release(self, key):
        self._alive[key] -= 1

    def all(self):
        return sum(self.sizes.values())

    def still(self):
        return sum(size for key, size in self.sizes.items() if self._alive[key] > 0)


def bytes_of(tensors, but_not=()):
    """Bytes of their storages, each counted once."""
    tensors = tensors if isinstance(tensors, (tuple, list)) else (tensors,)
    storages = [tensor.untyped_storage() for tensor in tensors if hasattr(tensor, "untyped_storage")]
    return sum({storage.data_ptr(): storage.nbytes() for storage in storages if storage.data_ptr() not in but_not}.values())


class Moment(NamedTuple):
    wall: int
    thread: int
    switches: int


def voluntary_switches():
    """How often this thread gave up its core voluntarily; where that is not known, a different number every time."""
    if not hasattr(resource, "RUSAGE_THREAD"):
        return time.perf_counter_ns()
    return resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw


class Profiler:
    def __init__(self, job, stream):
        import torch
        from torch.distributed.pipelining import PipelineStage

        from . import chain, halves, look
        from .usermodule import UserModule

        self.stage_class = PipelineStage
        self.torch, self.stream, self.job = torch, stream, job
        self.chain, self.halves, self.look = chain, halves, look
        self.device = chosen_device(torch, job["device"])
        self.wall = self.taken = 0
        self.module = UserModule(job["module"])
        if self.module.by_stage:
            raise Refused(job["module"], "builds stages, and layers are measured one by one",
                          "write build() that returns the list of layers")
        stream.line(at="building the layers")
        self.layers = [layer.to(self.device) for layer in self.module.layers(job["seed"])]
        inputs, targets = self.module.batch(0, job["seed"])
        rows, pieces = targets.shape[0], job["microbatches"]
        if rows % pieces:
            raise Refused(f"{self.module.file}:batch", f"{rows} rows cannot be cut into {pieces} microbatches",
                          "use a divisor")
        self.rows = rows // pieces
        self.inputs = tuple(value[: self.rows].to(self.device) for value in inputs)
        self.target = targets[: self.rows].to(self.device)
        self.loss = self.module.loss()

    def now(self):
        if self.device.type == "cuda":
            self.torch.cuda.synchronize()
        return Moment(time.perf_counter_ns(), time.thread_time_ns(), voluntary_switches())

    def _between(self, one, other):
        """The time between two moments. If a CPU thread did not wait voluntarily, it is the thread's own processor
        time: other programs had the core for the rest. If it slept or waited for its helpers, it is the wall-clock
        time."""
        wall = other.wall - one.wall
        taken = other.thread - one.thread if self.device.type == "cpu" and one.switches == other.switches else wall
        self.wall, self.taken = self.wall + wall, self.taken + min(taken, wall)
        return taken

    def _forward(self, index, values):
        return self._with_loss(index, self._call(index, values))

    def _call(self, index, values):
        return self.chain.as_output(self.chain.as_tuple(self.layers[index](*values)))

    def _with_loss(self, index, output):
        return self.loss(output, self.target) if index + 1 == len(self.layers) else output

    def _roots(self, output):
        """The values from which a backward starts, and their gradients."""
        roots = tuple(root for root in self.chain.as_tuple(output)
                      if isinstance(root, self.torch.Tensor) and root.requires_grad)
        return roots, [self.torch.ones_like(root) for root in roots]

    def _backwards(self, output, values, parameters):
        """Two functions, to be called in order: the input gradient and the weight gradient, where that cannot be split the
        whole backward and nothing. Also the gradients that they start from."""
        roots, gradients = self._roots(output)
        if self.whole:
            return (lambda: self.halves.full(roots, gradients)), (lambda _: None), gradients
        return (*self.halves.halves(roots, gradients, values, parameters), gradients)

    def measure(self, index, values, known):
        """Measurements of one layer, and its outputs for the next one. `known`: storages that are kept already."""
        self.whole = index in self.found.unsplittable
        torch, layer = self.torch, self.layers[index]
        parameters = [parameter for parameter in layer.parameters() if parameter.requires_grad]
        owned = {tensor.untyped_storage().data_ptr() for tensor in (*layer.parameters(), *layer.buffers())}
        kept = Kept(torch, owned | known)
        inputs = self.chain.fresh(values)
        with kept.hooks():
            made = self._call(index, inputs)
            of_layer = kept.all()
            output = self._with_loss(index, made)
        saved, pointers = kept.all(), set(kept.sizes) | known
        kept_input = 0 if index == 0 else bytes_of(inputs, but_not=kept.sizes)
        kept_output = bytes_of(made, but_not=pointers)
        if index + 1 < len(self.layers) and hasattr(self.stage_class, "release_fwd_send_outputs"):
            kept_output = 0  # a stage frees an output that was sent, but never the one that the loss was computed from
        del made
        tensors = self.chain.as_tuple(output)
        size = sum(tensor.numel() * tensor.element_size() for tensor in tensors if isinstance(tensor, torch.Tensor))
        following = self.chain.fresh(tensors)
        first, second, gradients = self._backwards(output, inputs, parameters)
        groups = first()
        held = [tensor for group in groups or () for some in group.get("grads") or () for tensor in some if tensor is not None]
        ends = {tensor.untyped_storage().data_ptr() for tensor in gradients}
        kept_gradient = bytes_of([tensor for tensor in held if tensor.untyped_storage().data_ptr() in ends])
        ends |= {value.grad.untyped_storage().data_ptr() for value in inputs
                 if isinstance(value, torch.Tensor) and value.grad is not None}
        lasting = bytes_of(held, but_not=ends | owned | pointers)
        held = gradients = None
        if index > 0:
            del output, tensors, first
        still = kept.still()
        second(groups)
        del groups
        memory = self._workspaces(index, values, parameters, lasting)
        layer.zero_grad(set_to_none=True)
        times = {"forward": [], "input_grad": [], "weight_grad": [], "backward": []}
        gc.collect()
        gc.freeze()  # the collector skips the objects that imports made
        gc.disable()
        began, rounds = time.monotonic(), 0
        while rounds < WARM_UP + FEWEST or (time.monotonic() - began < self.job["seconds"] and rounds < self.job["most"]):
            inputs = self.chain.fresh(values)
            start = self.now()
            output = self._forward(index, inputs)
            middle = self.now()
            first, second, _ = self._backwards(output, inputs, parameters)
            ready = self.now()
            groups = first()
            between = self.now()
            second(groups)
            end = self.now()
            inputs = self.chain.fresh(values)
            output = self._forward(index, inputs)
            roots, gradients = self._roots(output)
            begin = self.now()
            self.halves.full(roots, gradients)
            full = self.now()
            rounds += 1
            if rounds > WARM_UP:
                passes = (start, middle), (ready, between), (between, end), (begin, full)
                for name, (one, other) in zip(times, passes):
                    times[name].append(self._between(one, other))
            layer.zero_grad(set_to_none=True)
            gc.collect()  # the split backward makes reference cycles
        gc.enable()
        numbers = {name: round(statistics.median(values)) for name, values in times.items()}
        sums = [sum(values) for values in zip(times["forward"], times["input_grad"], times["weight_grad"])]
        quarters = statistics.quantiles(sums, n=4)
        numbers["spread"] = (quarters[2] - quarters[0]) / 2 / statistics.median(sums)
        numbers.update(saved=saved, saved_for_weight_grad=min(saved, still), saved_from_input_grad=lasting, output=size,
                       kept_input=kept_input, kept_output=kept_output, saved_by_loss=saved - of_layer, kept_gradient=kept_gradient,
                       rounds=len(sums), **memory,
                       parameters=sum(map(self.look.bytes_of, layer.parameters())),
                       frozen=sum(self.look.bytes_of(p) for p in layer.parameters() if not p.requires_grad),
                       **self._shared_of(index))
        # Only storages that live on may be recognised: other addresses are reused.
        return numbers, following, pointers & {tensor.untyped_storage().data_ptr() for tensor in following
                                               if isinstance(tensor, torch.Tensor)}

    def _shared_of(self, index):
        """Bytes of trained parameters that an earlier layer holds too, and that layer's number: of several the one that
        shares the most."""
        by_owner = {}
        for shared in self.found.shared:
            owner = min(layer for layer, _ in shared.places)
            if shared.trained and owner < index and any(layer == index for layer, _ in shared.places):
                by_owner[owner] = by_owner.get(owner, 0) + self.look.bytes_of(shared.parameter)
        if not by_owner:
            return {}
        owner = max(by_owner, key=by_owner.get)
        if len(by_owner) > 1:
            self.stream.line(note=f"layer {index} shares parameters with several layers; counted are those of layer {owner}")
        return {"shared": by_owner[owner], "shared_with": owner}

    def _workspaces(self, index, values, parameters, lasting):
        """The temporary memory of the passes, beside what stays. `lasting`: what I leaves for W, without the gradients
        that it was given and passes on. Gradients of parameters are allocated already, as in a step."""
        meter = DeviceMeter(self.torch) if self.device.type == "cuda" else HostMeter(self.torch)
        with meter:
            inputs = self.chain.fresh(values)
            with meter.stretch("F"):
                made = self._call(index, inputs)
                output = self._with_loss(index, made)
            first, second, gradients = self._backwards(output, inputs, parameters)
            with meter.stretch("I"):
                groups = first()
            gradients = None
            if index > 0:
                del output, first
            with meter.stretch("W"):
                second(groups)
            made = output = first = second = groups = None
            inputs = self.chain.fresh(values)
            made = self._call(index, inputs)
            output = self._with_loss(index, made)
            roots, gradients = self._roots(output)
            with meter.stretch("B"):
                self.halves.full(roots, gradients)
            handed = sum(value.grad.nbytes for value in inputs if isinstance(value, self.torch.Tensor) and value.grad is not None)
        seen, _ = meter.read()
        f, i, w, b = (seen[name] for name in "FIWB")
        return {"workspace_forward": max(0, f.peak - f.after),
                "workspace_input_grad": max(0, i.peak - i.before - lasting - handed),
                "workspace_weight_grad": max(0, w.peak - w.before),
                "workspace_backward": max(0, b.peak - b.before - handed),
                "peak": max(f.peak, i.peak, w.peak, b.peak) - f.before}

    def _look(self):
        looker = self.look.Looker(self.device, self.inputs, self.target, self.loss)
        looker.see_all(self.layers)
        for number in looker.through(self.layers, len(self.layers)):
            self.stream.line(at=f"a look at layer {number}")
        self.found = looker.found
        for layer in self.layers:
            layer.to(self.device)
        estimated = ["input_grad", "weight_grad"] if self.found.unsplittable else []
        self.stream.line(found=self.found.lines(), estimated=estimated)

    def names(self):
        """Names of the layers: their class, with a number where there are several of it."""
        kinds = [type(layer).__name__ for layer in self.layers]
        return [f"{kind} {kinds[:index].count(kind)}" if kinds.count(kind) > 1 else kind for index, kind in enumerate(kinds)]

    def run(self):
        torch = self.torch
        types = [parameter.dtype for layer in self.layers for parameter in layer.parameters()]
        short = types and types[0] in (torch.bfloat16, torch.float16)
        if any(type_ != types[0] for type_ in types):
            self.stream.line(note=f"parameters are of several types; bytes per parameter are those of {types[0]}")
        device = torch.cuda.get_device_name() if self.device.type == "cuda" else "CPU"
        self.stream.line(hello=0, device=device, torch=torch.__version__, layers=len(self.layers),
                         data_type="bf16" if short else "fp32", rows=self.rows)
        self._look()
        values = self.inputs  # a step's rows exist before it begins and belong to no layer
        known = {value.untyped_storage().data_ptr() for value in values}
        for index, name in enumerate(self.names()):
            try:
                numbers, values, known = self.measure(index, values, known)
            except Refused:
                raise
            except Exception as error:
                raise Refused(f"layer {index} ({name})", f"{type(error).__name__}: {str(error).splitlines()[0]}",
                              "every layer takes what the one before it returns") from error
            self.stream.line(layer=name, number=index, **numbers)
        share = 1 - self.taken / self.wall
        if share > 0.05:
            self.stream.line(note=f"other programs had the processor core for {share:.0%} of the time, which is left out")
        self.stream.line(done=True)


def main(arguments=None):
    options = parser_of("profile", __doc__).parse_args(arguments)
    stream = Stream(options.record, 0)
    try:
        job = read(options.job)
        torch = with_pipelining(stream)
        if "OMP_NUM_THREADS" in os.environ:
            torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
        Profiler(job, stream).run()
    except Refused as error:
        stream.line(failed=error.what, where=error.where, hint=error.hint)
        sys.exit(1)
    except Exception as error:
        stream.line(failed=f"{type(error).__name__}: {error}", where="profile")
        traceback.print_exc()
        sys.exit(1)


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # without the messages that some packages print at interpreter exit
