# SPDX-License-Identifier: GPL-3.0-or-later
"""What PyTorch reaches on this machine's GPU: products, and one layer like Llama-3-8B's, forward and backward. fp32, and
fp32 whose products have factors rounded to bf16, as ours with --bf16. A line for each."""

import sys
import time

import torch
import torch.nn.functional as F

WIDTH, HEADS, SHARED, INNER, LENGTH = 4096, 32, 8, 14336, 2048


def milliseconds(step):
    for _ in range(3):
        step()
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(10):
        step()
    torch.cuda.synchronize()
    return (time.perf_counter() - begin) * 100


def layer():
    def weight(rows, columns):
        return torch.randn(rows, columns, device="cuda").mul_(columns**-0.5).requires_grad_()

    size = WIDTH // HEADS
    query, key, value, out = (weight(n, WIDTH) for n in (WIDTH, SHARED * size, SHARED * size, WIDTH))
    gate, up, down = weight(INNER, WIDTH), weight(INNER, WIDTH), weight(WIDTH, INNER)
    scales = [torch.ones(WIDTH, device="cuda", requires_grad=True) for _ in range(2)]
    x = torch.randn(1, LENGTH, WIDTH, device="cuda", requires_grad=True)
    slope = torch.randn_like(x)
    angles = torch.arange(LENGTH, device="cuda")[:, None] * 500000.0 ** (-torch.arange(0, size, 2, device="cuda") / size)
    cosine, sine = angles.cos(), angles.sin()

    def turned(heads):
        a, b = heads.chunk(2, -1)
        return torch.cat((a * cosine - b * sine, b * cosine + a * sine), -1)

    def heads_of(values, count):
        return values.view(1, LENGTH, count, size).transpose(1, 2)

    def norm(values, scale):
        return values * torch.rsqrt(values.square().mean(-1, keepdim=True) + 1e-5) * scale

    def step():
        inner = norm(x, scales[0])
        q, k, v = (heads_of(F.linear(inner, w), n) for w, n in ((query, HEADS), (key, SHARED), (value, SHARED)))
        k, v = (each.repeat_interleave(HEADS // SHARED, 1) for each in (turned(k), v))
        seen = F.scaled_dot_product_attention(turned(q), k, v, is_causal=True)
        y = x + F.linear(seen.transpose(1, 2).reshape(1, LENGTH, WIDTH), out)
        inner = norm(y, scales[1])
        (y + F.linear(F.silu(F.linear(inner, gate)) * F.linear(inner, up), down)).backward(slope)

    return step


print(f"PyTorch {torch.__version__} on {torch.cuda.get_device_name()}", file=sys.stderr)
for precision, name in (("highest", "fp32"), ("medium", "fp32 of bf16 factors")):
    torch.set_float32_matmul_precision(precision)
    for size in (256, 1024, 4096, 8192):
        a, b = (torch.randn(size, size, device="cuda") for _ in range(2))
        print(f"{size}^3 {name}: {2 * size**3 / milliseconds(lambda: a @ b) / 1e9:.1f} TFLOP/s", flush=True)
    print(f"a layer, {name}: {milliseconds(layer()):.2f} ms", flush=True)
