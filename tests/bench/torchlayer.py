#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""A whole layer like Llama's, forward and backward on one thread: ours beside PyTorch's, in one run.

    torchlayer.py BENCH_STAGEMATHS [ROUNDS]

PyTorch's is the `transformers` package's eager layer with its `sdpa` attention, of the sizes of bench_stagemaths's
`llama`. Rounds of both take turns, so that other work on the machine meets both; each side shows its quickest round,
in the processor time of its thread.
"""

import json
import subprocess
import sys
import time

import torch
import transformers


def layer_of(width):
    config = transformers.LlamaConfig(
        hidden_size=width, num_hidden_layers=1, num_attention_heads=width // 64, num_key_value_heads=width // 256,
        head_dim=64, intermediate_size=width * 11 // 4, vocab_size=256, max_position_embeddings=512,
        attn_implementation="sdpa")
    model = transformers.LlamaModel(config)
    tokens = torch.randn(1, 512, width, requires_grad=True)
    places = torch.arange(512)[None]
    turned = model.rotary_emb(tokens, places)
    slope = torch.randn(1, 512, width)

    def step():
        out = model.layers[0](tokens, position_embeddings=turned, position_ids=places, attention_mask=None)
        (out[0] if isinstance(out, tuple) else out).backward(slope)

    return step


def theirs(step, least=0.5):
    step()
    times = []
    until = time.thread_time() + least
    while not times or time.thread_time() < until:
        begin = time.thread_time()
        step()
        times.append(time.thread_time() - begin)
    return min(times) * 1e3


def ours(program, width):
    said = subprocess.run([program, f"--benchmark_filter=^llama/{width}$", "--benchmark_min_time=0.5",
                           "--benchmark_format=json"], check=True, capture_output=True, text=True).stdout
    return json.loads(said)["benchmarks"][0]["cpu_time"]


def main():
    program, rounds = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 3
    torch.set_num_threads(1)
    print(f"PyTorch {torch.__version__}, transformers {transformers.__version__}, one thread, fp32, 512 tokens")
    print("| width | ours | PyTorch | ours / PyTorch |\n| --- | --- | --- | --- |")
    for width in (512, 1024, 2048):
        step = layer_of(width)
        pairs = [(ours(program, width), theirs(step)) for _ in range(rounds)]
        own, other = min(pair[0] for pair in pairs), min(pair[1] for pair in pairs)
        print(f"| {width} | {own:.1f} ms | {other:.1f} ms | {own / other:.2f} |", flush=True)


if __name__ == "__main__":
    main()
