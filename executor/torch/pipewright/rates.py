# SPDX-License-Identifier: GPL-3.0-or-later
"""Times single operations of given shapes on one device, for `pipewright devices --measure --operations`.

    python -m pipewright.rates JOB --record PLACE

JOB lists shapes by operation, layout, types and sizes, as files of rates name them, and the seconds that all may take. A
product has its operands as a linear layer does: TN the forward, NN the input gradient, NT the weight gradient, which is added
to a sum where the types name one. Attention is PyTorch's own; its backward alone is timed. An elementwise kernel is the mean
of a norm, a sum and an activation of so many bytes. The smallest shapes come first; one that does not fit is left out, with
the reason.
"""

import statistics
import sys
import time
import traceback

from .errors import Refused, no_torch
from .job import chosen_device, parser_of, read
from .record import Stream

TIMINGS, AT_LEAST = 5, 5e-3
CLASSES = 1024


class Unmeasured(Exception):
    """Why a shape is left out."""


def work_of(shape):
    """What it does, in FLOPs; a byte through memory counts as ten of them."""
    size = shape["dims"]
    if shape["operation"] in ("product", "grouped_product"):
        work = 2
        for each in size:
            work *= each
        return work
    if shape["operation"].startswith("attention"):
        heads, _, query, value, length = size
        return 5 * heads * length * length * (query + value)
    return 10 * size[0]


class Operations:
    """Functions that run a shape once."""

    def __init__(self, torch, device):
        self.torch, self.device = torch, device

    def of(self, shape):
        make = getattr(self, "_" + shape["operation"], None)
        if make is None:
            raise Unmeasured("collectives are not measured by operation")
        return make(shape, [int(size) for size in shape["dims"]])

    def _types(self, shape):
        types = {"fp32": self.torch.float32, "bf16": self.torch.bfloat16}
        names = shape["types"].split("+")
        for name in names:
            if name not in types:
                raise Unmeasured(f"{name} is not multiplied here")
        return types[names[0]], types[names[1]] if len(names) > 1 else None

    def _made(self, *sizes, dtype=None, gradient=False):
        made = self.torch.randn(*sizes, device=self.device, dtype=self.torch.float32).to(dtype or self.torch.float32)
        return made.requires_grad_(gradient)

    def _product(self, shape, size):
        return self._products(shape, (), size)

    def _grouped_product(self, shape, size):
        return self._products(shape, (size[0],), size[1:])

    def _products(self, shape, groups, size):
        rows, inner, columns = size
        operands, summed = self._types(shape)
        multiply = self.torch.matmul
        if shape["layout"] == "TN":
            left, right = self._made(*groups, rows, inner, dtype=operands), self._made(*groups, columns, inner, dtype=operands)
            return [lambda: multiply(left, right.mT)]
        if shape["layout"] == "NN":
            left, right = self._made(*groups, rows, inner, dtype=operands), self._made(*groups, inner, columns, dtype=operands)
            return [lambda: multiply(left, right)]
        left, right = self._made(*groups, inner, rows, dtype=operands), self._made(*groups, inner, columns, dtype=operands)
        if summed is None:
            return [lambda: multiply(left.mT, right)]
        total = self._made(*groups, rows, columns, dtype=summed)
        if summed == operands:
            add = total.baddbmm_ if groups else total.addmm_
            return [lambda: add(left.mT, right)]
        return [lambda: total.add_(multiply(left.mT, right))]  # PyTorch has no product that adds to a wider sum

    def _attention(self, shape, size):
        heads, shared, query, value, length = size
        if heads % shared:
            raise Unmeasured("a member's share of its heads is no whole number")
        operands, _ = self._types(shape)
        values = (self._made(1, heads, length, query, dtype=operands, gradient=True),
                  self._made(1, shared, length, query, dtype=operands, gradient=True),
                  self._made(1, shared, length, value, dtype=operands, gradient=True))
        if shape["layout"] != "stored":
            attend = self.torch.nn.functional.scaled_dot_product_attention
            return values, lambda: attend(*values, is_causal=shape["layout"] == "causal", enable_gqa=shared != heads)
        if shared != heads:
            raise Unmeasured("attention of shared keys does not keep its scores here")
        mask = self.torch.full((length, length), float("-inf"), device=self.device, dtype=operands).triu(1)
        q, k, v = values
        return values, lambda: ((q @ k.mT * query ** -0.5 + mask).softmax(-1) @ v)

    def _attention_forward(self, shape, size):
        _, attend = self._attention(shape, size)

        def forward():
            with self.torch.no_grad():
                attend()
        return [forward]

    def _attention_backward(self, shape, size):
        values, attend = self._attention(shape, size)
        result = attend()
        gradient = self.torch.ones_like(result)
        return [lambda: self.torch.autograd.grad(result, values, gradient, retain_graph=True)]

    def _memory(self, shape, size):
        floats = max(3, size[0] // 4)
        two, three = floats // 2, floats // 3
        if shape["layout"] == "permutation":
            columns = min(two, CLASSES)
            rows = two // columns
            source = self._made(rows, columns)
            order = self.torch.randperm(rows, device=self.device)
            return [lambda: source.index_select(0, order)]
        if shape["layout"] == "loss":
            columns = min(three, CLASSES)
            rows = three // columns
            logits = self._made(rows, columns)
            targets = self.torch.zeros(rows, dtype=self.torch.int64, device=self.device)
            loss = self.torch.nn.functional.cross_entropy
            return [lambda: loss(logits, targets)]
        columns = min(two, CLASSES)
        rows, gain = two // columns, self._made(columns)
        one, other, result = self._made(three), self._made(three), self._made(three)
        wide = self._made(rows, columns)
        norm = self.torch.nn.functional.rms_norm
        return [lambda: norm(wide, (columns,), gain), lambda: self.torch.add(one, other, out=result),
                lambda: self.torch.mul(one, other, out=result)]


class Timer:
    def __init__(self, torch, device):
        self.torch, self.device = torch, device

    def _now(self):
        if self.device.type == "cuda":
            self.torch.cuda.synchronize()
        return time.perf_counter()

    def seconds(self, calls, timings):
        def once(times=1):
            begin = self._now()
            for _ in range(times):
                for call in calls:
                    call()
            return self._now() - begin
        once()
        often = min(4096, max(1, int(AT_LEAST / max(1e-9, once()))))
        return statistics.median(once(often) for _ in range(timings)) / often / len(calls)


def measure(torch, job, stream):
    device = chosen_device(torch, job["device"])
    stream.line(hello=0, torch=torch.__version__,
                device=torch.cuda.get_device_name() if device.type == "cuda" else "CPU")
    operations, timer = Operations(torch, device), Timer(torch, device)
    shapes = job["shapes"]
    order = sorted(range(len(shapes)), key=lambda index: work_of(shapes[index]))
    cost = [1e8 + work_of(shape) for shape in shapes]
    began, done = time.monotonic(), 0.0
    for number, index in enumerate(order):
        fraction, spent = (number + 1) / len(order), time.monotonic() - began
        expected = spent / done * cost[index] if done else 0.0
        if spent + expected / TIMINGS > job["seconds"]:
            stream.line(shape=index, left_out=f"{spent:.0f} s had passed", fraction=fraction)
            continue
        timings = max(1, min(TIMINGS, int(TIMINGS * (job["seconds"] - spent) / expected))) if expected else TIMINGS
        try:
            seconds = timer.seconds(operations.of(shapes[index]), timings)
        except Unmeasured as why:
            stream.line(shape=index, left_out=str(why), fraction=fraction)
            continue
        except RuntimeError as error:  # out of memory, or no kernel for this shape
            stream.line(shape=index, left_out=str(error).splitlines()[0], fraction=fraction)
            continue
        done += cost[index]
        stream.line(shape=index, seconds=seconds, fraction=fraction)
    stream.line(done=True)


def main(arguments=None):
    options = parser_of("rates", __doc__).parse_args(arguments)
    stream = Stream(options.record, 0)
    try:
        try:
            import torch
        except ImportError as error:
            raise no_torch(error) from error
        measure(torch, read(options.job), stream)
    except Refused as error:
        stream.line(failed=error.what, where=error.where, hint=error.hint)
        sys.exit(1)
    except Exception as error:
        stream.line(failed=f"{type(error).__name__}: {error}", where="measuring")
        traceback.print_exc()
        sys.exit(1)


if __name__ == "__main__":
    main()
