# SPDX-License-Identifier: GPL-3.0-or-later
"""The user's own file: `FILE.py:build` and the functions beside it.

`build()` returns the model as a list of layers (or an nn.Sequential), `build(stage)` or `build(stage, stages)` one
stage. A tuple that one of them returns is as many arguments of the next. The file also has `batch(step)`, which returns
the inputs and the targets of a whole step, and `loss(output, target)`, a mean over the rows. `optimizer(parameters)` is
optional, and `replicate(module, mesh)` is for copies of the pipeline.
"""

import importlib.util
import inspect
import os
import sys
import traceback

from .errors import Refused, lacks_memory


class UserModule:
    def __init__(self, place):
        """`place` is FILE.py:NAME. Runs the file."""
        self.place = place
        file, _, name = place.rpartition(":")
        if not file or not name:
            raise Refused("--module", f'"{place}" names no function', "write FILE.py:build")
        if not os.path.isfile(file):
            raise Refused("--module", f"there is no file {file}", "write FILE.py:build")
        self.file = file
        folder = os.path.dirname(os.path.abspath(file))
        if folder not in sys.path:
            sys.path.insert(0, folder)
        spec = importlib.util.spec_from_file_location("pipewright_user_module", file)
        if spec is None:
            raise Refused("--module", f"{file} is no Python file", "write FILE.py:build")
        self._module = importlib.util.module_from_spec(spec)
        try:
            spec.loader.exec_module(self._module)
        except Exception as error:
            raise Refused(self._place(error, file), f"cannot be run: {type(error).__name__}: {error}") from error
        self._build = self._function(name, "returns the model's layers")
        wanted = [p for p in inspect.signature(self._build).parameters.values()
                  if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        self.stage_arguments = len(wanted)
        if self.stage_arguments > 2:
            raise Refused(place, f"takes {len(wanted)} arguments", "write build(), build(stage) or build(stage, stages)")

    @property
    def by_stage(self):
        """Whether the file builds stages instead of layers."""
        return self.stage_arguments > 0

    def _function(self, name, what):
        function = getattr(self._module, name, None)
        if not callable(function):
            raise Refused(self.file, f"has no function {name}", f"it {what}")
        return function

    def _place(self, error, otherwise):
        """The innermost line of the user's file in an error's traceback."""
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__)
                 if os.path.abspath(frame.filename) == os.path.abspath(self.file)]
        return f"{self.file}:{lines[-1]}" if lines else otherwise

    def layers(self, seed):
        """All layers; the same numbers for the same seed."""
        import torch

        torch.manual_seed(seed)
        built = self._call(self._build)
        if isinstance(built, torch.nn.Module) and not isinstance(built, (torch.nn.Sequential, torch.nn.ModuleList)):
            raise Refused(self.place, f"returns a {type(built).__name__}, not a list of layers",
                          "return the list of layers that the model calls one after the other, or an nn.Sequential")
        try:
            layers = list(built)
        except TypeError:
            layers = []
        if not layers or not all(isinstance(layer, torch.nn.Module) for layer in layers):
            raise Refused(self.place, "returns no list of nn.Module", "return the model's layers in order")
        return layers

    def stage(self, stage, stages, seed):
        import torch

        torch.manual_seed(seed + stage)
        built = self._call(self._build, *(stage, stages)[: self.stage_arguments])
        if not isinstance(built, torch.nn.Module):
            raise Refused(self.place, f"returns a {type(built).__name__} for stage {stage}", "return an nn.Module")
        return built

    def _call(self, function, *arguments):
        try:
            return function(*arguments)
        except Exception as error:
            if lacks_memory(error):
                raise
            raise Refused(self._place(error, f"{self.file}:{function.__name__}"),
                          f"{type(error).__name__}: {error}") from error

    def batch(self, step, seed):
        """Inputs (a tuple) and targets of a step; the same on every rank."""
        import torch

        torch.manual_seed(seed * 1_000_003 + step + 1)
        function = self._function("batch", "returns the inputs and the targets of a step: batch(step)")
        pair = self._call(function, step)
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise Refused(f"{self.file}:batch", "returns no pair", "return inputs, targets")
        inputs, targets = pair
        inputs = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
        for value in (*inputs, targets):
            if not isinstance(value, torch.Tensor) or value.dim() == 0:
                raise Refused(f"{self.file}:batch", "returns something other than tensors of rows",
                              "the first dimension is cut into microbatches")
        return inputs, targets

    def loss(self):
        import torch

        function = self._function("loss", "returns the mean loss of a microbatch: loss(output, target)")

        def checked(output, target):
            value = self._call(function, output, target)
            if not isinstance(value, torch.Tensor) or value.numel() != 1:
                shape = f"of the shape {tuple(value.shape)}" if hasattr(value, "shape") else ""
                raise Refused(f"{self.file}:loss", f"returns a {type(value).__name__} {shape}".rstrip(),
                              "return one number as a tensor, the mean over the rows")
            return value

        return checked

    def replicate(self, module, mesh):
        """A stage joined with its copies, whose ranks are those of the mesh."""
        function = self._function("replicate", "joins the copies of a stage, such as replicate(module, mesh): "
                                  "return DistributedDataParallel(module, process_group=mesh.get_group())")
        return self._call(function, module, mesh)

    def optimizer(self, parameters):
        import torch

        function = getattr(self._module, "optimizer", None)
        return self._call(function, parameters) if callable(function) else torch.optim.AdamW(parameters, lr=1e-3)


def partition(layers, stages, given, of_module, place):
    """How many layers each stage holds, and a note if the design does not say. `given`: the design's partition;
    `of_module`: whether the design's model stands for this module."""
    if given is not None and sum(given) == layers:
        return given, None
    if given is not None and of_module:
        raise Refused(place, f"returns {layers} layers, and the design's model has {sum(given)}",
                      "make the design of this module: profile it, or write a table of its layers")
    if layers < stages:
        raise Refused(place, f"returns {layers} layers, fewer than the design's {stages} stages", "use fewer stages")
    even = [layers // stages + (stage < layers % stages) for stage in range(stages)]
    return even, f"the design says nothing of this module's {layers} layers: they are cut evenly, {even}"
