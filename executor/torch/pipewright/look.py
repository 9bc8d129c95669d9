# SPDX-License-Identifier: GPL-3.0-or-later
"""A look at a person's module before anything runs: what it holds that a pipeline has to know.

    python -m pipewright.look JOB --record PLACE

One microbatch goes through the layers one by one, each on the device alone. Found are parameters that several layers
hold, layers that hand on several values, frozen parameters, backwards that cannot be split into I and W, and layers that
draw random numbers. `check --for torch` says it; `profile`, `run` and `experiment` say it first and act on it. Random
numbers, buffers and gradients are as before afterwards.
"""

import os
import sys
import traceback

import torch

from .chain import as_output, as_tuple, fresh
from .compare import bound_of, relative_error
from .errors import Refused, lacks_memory
from .halves import full, halves
from .job import chosen_device, parser_of, read, with_pipelining
from .record import Stream
from .shared import shared_parameters
from .usermodule import UserModule

ROWS = 2  # of batch(0), where no design says how many a microbatch has; norms over the rows want two


class Found:
    """What was found, by the layer's number. `kind` is what the parts are: layers, or stages built one by one."""

    def __init__(self, kind="layer"):
        self.kind, self.names, self.shared = kind, [], []
        self.frozen = {}        # bytes of frozen parameters, and of all
        self.handed = {}        # per layer but the last the types of the values that it hands on
        self.unsplittable = {}  # why its backward cannot be split
        self.random = []

    def name(self, number):
        return f"{self.kind} {number} ({self.names[number]})"

    def lines(self):
        """For the user: [{"kind", "what"}]."""
        texts = [("shared", text) for text in self._shared_texts()]
        texts += [("tuples", text) for text in self._tuple_texts()]
        texts += [("frozen", text) for text in self._frozen_texts()]
        texts += [("backward", f"{self.name(number)}: its backward cannot be split, {why}; in schedules with I and W, "
                               "I runs it whole") for number, why in self.unsplittable.items()]
        if self.random:
            texts.append(("random", f"{self._numbers(self.random)} draw{'s' * (len(self.random) == 1)} random numbers: every "
                                    "stage and microbatch its own, the same in every run of a seed"))
        if not texts:
            texts.append(("plain", f"{len(self.names)} {self.kind}s that take and return one tensor; nothing is shared, frozen or "
                                   "random, and every backward can be split"))
        return [{"kind": kind, "what": text} for kind, text in texts]

    def _shared_texts(self):
        for shared in self.shared:
            places = ", ".join(f"{name} of {self.name(layer)}" for layer, name in shared.places)
            yield f"one parameter ({size_text(bytes_of(shared.parameter))}) is {places}" + \
                (": stages that hold it sum their gradients" if shared.trained else ", and frozen")

    def _tuple_texts(self):
        several = {number: types for number, types in self.handed.items() if len(types) > 1}
        for types in dict.fromkeys(several.values()):
            numbers = [number for number, each in several.items() if each == types]
            yield f"{self._numbers(numbers)} hand{'s' * (len(numbers) == 1)} on {len(types)} values: {', '.join(types)}"

    def _frozen_texts(self):
        held = {number: of for number, of in self.frozen.items() if of[0] > 0}
        if held:
            frozen, everything = (sum(of[i] for of in self.frozen.values()) for i in (0, 1))
            without = [number for number, (some, of) in held.items() if some == of]
            yield f"{size_text(frozen)} of {size_text(everything)} of parameters are frozen, in {self._numbers(held)}" + \
                (f"; {self._numbers(without)} train{'s' * (len(without) == 1)} nothing" if without else "")

    def _numbers(self, numbers):
        numbers = sorted(numbers)
        runs = []
        for number in numbers:
            if runs and number == runs[-1][-1] + 1:
                runs[-1].append(number)
            else:
                runs.append([number])
        text = ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]} to {run[-1]}" for run in runs)
        return f"{self.kind}{'s' * (len(numbers) > 1)} {text}"

    def refuse_ends(self, counts):
        """Between stages only tensors are handed on. `counts`: the layers of each stage."""
        for stage in range(len(counts) - 1):
            last = sum(counts[: stage + 1]) - 1
            odd = [type_ for type_ in self.handed.get(last, ()) if not type_.startswith("tensor")]
            if odd:
                raise Refused(f"stage {stage}", f"ends with {self.name(last)}, which returns a {odd[0]}",
                              "stages hand on tensors: let the layer return tensors, or end the stage after another one")


def bytes_of(parameter):
    return parameter.numel() * parameter.element_size()


def size_text(size):
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            break
        size /= 1024
    else:
        unit = "GiB"
    return f"{size:.4g} {unit}"


def type_text(value):
    return f"tensor of {str(value.dtype).removeprefix('torch.')}" if isinstance(value, torch.Tensor) else type(value).__name__


class Looker:
    """Looks at parts one after the other. `inputs` and `target`: those of a microbatch, on the device."""

    def __init__(self, device, inputs, target, loss, kind="layer", split=True):
        self.device, self.target, self.loss, self.split = device, target, loss, split
        self.values, self.found = tuple(inputs), Found(kind)

    def see_all(self, layers):
        """What can be seen without running: parameters that several layers hold."""
        self.found.shared = shared_parameters(layers)

    def through(self, parts, count):
        """Passes the values through all `count` parts; yields before each, for reports."""
        for number, part in enumerate(parts):
            yield number
            self.see(part, number + 1 == count)

    def see(self, layer, last):
        """Passes the values through the next part."""
        number = len(self.found.names)
        self.found.names.append(type(layer).__name__)
        parameters = list({id(p): p for p in layer.parameters()}.values())
        self.found.frozen[number] = (sum(bytes_of(p) for p in parameters if not p.requires_grad), sum(map(bytes_of, parameters)))
        layer.to(self.device)
        buffers, random = [(buffer, buffer.clone()) for buffer in layer.buffers()], self._random()
        try:
            made = as_tuple(layer(*fresh(self.values)))
            if any(not torch.equal(*pair) for pair in zip(random, self._random())):
                self.found.random.append(number)
            if not last:
                self.found.handed[number] = tuple(map(type_text, made))
            why = self._why_whole(layer, last, random) if self.split else None
        except Refused:
            raise
        except Exception as error:
            if lacks_memory(error):
                raise
            raise Refused(self.found.name(number), f"{type(error).__name__}: {first_line(error)}",
                          f"every {self.found.kind} takes what the one before it returns, of a tuple each value as an argument") \
                from error
        finally:
            with torch.no_grad():
                for buffer, before in buffers:
                    buffer.copy_(before)
            self._set_random(random)
        layer.to("cpu")
        if why:
            self.found.unsplittable[number] = why
        self.values = fresh(made)

    def _random(self):
        states = [torch.get_rng_state()]
        return states + [torch.cuda.get_rng_state(self.device)] if self.device.type == "cuda" else states

    def _set_random(self, states):
        torch.set_rng_state(states[0])
        if len(states) > 1:
            torch.cuda.set_rng_state(states[1], self.device)

    def _why_whole(self, layer, last, random):
        """Why the two halves do not give the gradients of the backward in one; None where they do."""
        named = [(name, p) for name, p in layer.named_parameters() if p.requires_grad]
        if not named or not any(value.requires_grad for value in self.values if isinstance(value, torch.Tensor)):
            return None
        expected = self._gradients(layer, last, random, named, in_halves=False)
        try:
            got = self._gradients(layer, last, random, named, in_halves=True)
        except Exception as error:
            if lacks_memory(error):
                raise
            cause = error.__cause__ or error
            return f"{type(cause).__name__}: {first_line(cause).partition('. ')[0]}"
        for name, of in expected.items():
            if of is None or not of.any():
                continue
            if got[name] is None:
                return f"which leaves out the gradient of {name}"
            if relative_error(got[name], of) > bound_of(of.dtype):
                return f"which gives another gradient of {name}"
        return None

    def _gradients(self, layer, last, random, named, in_halves):
        """The gradients of inputs and weights by name, of one backward from gradients that do not cancel out."""
        self._set_random(random)
        inputs = fresh(self.values)
        output = as_output(as_tuple(layer(*inputs)))
        roots = [root for root in as_tuple(self.loss(output, self.target) if last else output)
                 if isinstance(root, torch.Tensor) and root.requires_grad]
        generator = torch.Generator().manual_seed(1)
        given = [torch.randn(root.shape, generator=generator).to(root) for root in roots]
        parameters = [parameter for _, parameter in named]
        try:
            if in_halves:
                first, second = halves(roots, given, inputs, parameters)
                second(first())
            else:
                full(roots, given)
            leaves = [(f"input {number}", value) for number, value in enumerate(inputs) if isinstance(value, torch.Tensor)]
            return {name: leaf.grad for name, leaf in leaves + named}
        finally:
            for parameter in parameters:
                parameter.grad = None


def first_line(error):
    lines = str(error).strip().splitlines()
    return lines[0] if lines else ""


def look(job, module, tell):
    """The whole look, where no run or profile does it on its way."""
    if module.by_stage:
        raise Refused(job["module"], "builds stages one by one, and how many there are is not known here",
                      "write build() that returns the list of layers; `run` looks at stages too")
    device = chosen_device(torch, job["device"])
    layers = module.layers(job["seed"])
    inputs, target = module.batch(0, job["seed"])
    looker = Looker(device, [value[:ROWS].to(device) for value in inputs], target[:ROWS].to(device), module.loss())
    looker.see_all(layers)
    for number in looker.through(layers, len(layers)):
        tell(f"layer {number} of {len(layers)}")
    return looker.found


def main(arguments=None):
    options = parser_of("look", __doc__).parse_args(arguments)
    stream = Stream(options.record, 0)
    try:
        job = read(options.job)
        with_pipelining(stream)
        found = look(job, UserModule(job["module"]), lambda at: stream.line(at=at))
        stream.line(layers=found.names, found=found.lines(), torch=torch.__version__)
        stream.line(done=True)
    except Refused as error:
        stream.line(failed=error.what, where=error.where, hint=error.hint)
        sys.exit(1)
    except Exception as error:
        stream.line(failed=f"{type(error).__name__}: {first_line(error)}", where="check")
        traceback.print_exc()
        sys.exit(1)


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # without the messages that some packages print at interpreter exit
