#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes a file of rates of H100, H200 and H800 from four public tables.

    forhopper.py XLA CUDNN DEEPGEMM > hopper-sxm.json

XLA       xla_cuda_plugin.so of jax-cuda12-pjrt 0.8.1 (PyPI, Apache-2.0), which holds the tables of XLA's
          matmul_interpolator_data.h and collective_interpolator_data.h as text
CUDNN     a checkout of https://github.com/NVIDIA/cudnn-frontend (MIT) at 3929da2
DEEPGEMM  README.md of https://github.com/deepseek-ai/DeepGEMM (MIT) at 55ab91f

Only figures are carried over; what they are figures of is said in README.md beside this file.
"""
import csv
import glob
import re
import sys

from ratestables import PASSES, Tables, xla_products, xla_table

XLA = {"source": "OpenXLA, tables of sm_90 as in jax-cuda12-pjrt 0.8.1", "when": "2025"}
CUDNN = {"source": "NVIDIA, cudnn-frontend's benchmarks on H200 at 3929da2", "when": "2026-02-27"}
DEEPGEMM = {"source": "DeepSeek, DeepGEMM's README at 55ab91f, on H800", "when": "2025-03-25"}

# How far steps predicted by these rates were from measured ones; core.design.tst_knownerror compares it with the page.
PAGE = "resources/experiments/published-steps-hopper.md"
CHECKED = [{"products": "own", "runs": 6, "median": 0.184, "largest": 0.455,
            "of": "Megatron and Llama 3 on H100", "where": PAGE},
           {"products": "fp8", "runs": 8, "median": 0.031, "largest": 0.424, "of": "Megatron-Bridge on H100", "where": PAGE}]

PEAK, FP8_PEAK = 989e12, 1979e12
MEMORY = 4800e9  # of the H200, on which it was measured
LINK, LINK_PEAK = "NVLink 4", 450e9  # as the presets of clusters name it; of one direction
BF16, FP8 = ("bf16", "bf16+fp32", "bf16+bf16"), ("fp8", "fp8+fp32")
FEWEST = 1 << 20  # bytes of a collective below which a launch is all there is to its time


def narrow_products(path, tables):
    """Rows of "| groups | rows | columns | inner | 1234 TFLOPS |", without groups of plain products."""
    with open(path, encoding="utf-8") as file:
        for line in file:
            row = re.match(r"((?:\|\s*\d+\s*)+)\|\s*(\d+) TFLOPS", line)
            if not row:
                continue
            sizes = [int(size) for size in re.findall(r"\d+", row.group(1))]
            rows, columns, inner = sizes[-3:]
            tables.add("product" if len(sizes) == 3 else "grouped_product", FP8_PEAK, ["rows", "inner", "columns"],
                       [rows, inner, columns], int(row.group(2)) * 1e12 / FP8_PEAK, layout=PASSES, types=FP8,
                       **DEEPGEMM)


def rows_of(pattern):
    for path in sorted(glob.glob(pattern)):
        with open(path, encoding="utf-8", newline="") as file:
            yield from (row for row in csv.DictReader(file) if row["success"] == "True")


def attention(checkout, tables):
    """One number of heads was measured: every number has its rate. Of windows, what they leave is counted."""
    for row in rows_of(f"{checkout}/benchmark/sdpa_benchmark_training/results/h200*/*.csv"):
        if row["data_type"] != "bfloat16":
            continue
        sizes = [int(row[name]) for name in ("head_dim_qk", "head_dim_vo", "q_seqlen")]
        mask = "causal" if row["attn_mask"] == "top_left" else "whole"
        length = window = sizes[2]
        if row["sliding_window_size"]:
            window = min(length, int(float(row["sliding_window_size"])))
        met = length if mask == "whole" else window - window**2 / (2 * length)
        work = 2.0 * int(row["batch_size"]) * int(row["num_q_heads"]) * length * met * (sizes[0] + sizes[1])
        for operation, factor, time in (("attention_forward", 1, "fwd_time_ms"),
                                        ("attention_backward", 2.5, "bwd_time_ms")):
            tables.add(operation, PEAK, ["query_size", "value_size", "length"], sizes,
                       factor * work / (float(row[time]) / 1e3) / PEAK, layout=mask, types="bf16", **CUDNN)


def memory(checkout, tables):
    """Norms stand for all kernels that stream: a forward reads and writes, a backward reads two and writes one."""
    for row in rows_of(f"{checkout}/benchmark/norms/results/h200/*.csv"):
        if row["backend"] != "cudnn" or row["norm_type"] != "rms_norm":
            continue
        for factor, time in ((2, "fwd_time_ms"), (3, "bwd_time_ms")):
            size = factor * 2 * int(row["N"]) * int(row["C"])
            tables.add("memory", MEMORY, ["bytes"], [size], size / (float(row[time]) / 1e3) / MEMORY,
                       layout=("elementwise", "permutation", "loss", "cast"), **CUDNN)


def collectives(text, tables):
    """Its rate is bytes of the whole tensor by time; sizes are those of the result, of a reduce-scatter a share."""
    for entry in re.split(r"\n\s+instruction \{", text)[1:]:
        operation = re.search(r'opcode: "([^"]+)"', entry).group(1).replace("-", "_")
        members = int(re.search(r"num_devices_per_group: (\d+)", entry).group(1))
        rate = int(re.search(r"network_throughput_bytes_per_sec: (\d+)", entry).group(1))
        size = 4 * int(re.search(r"dimensions: (\d+)", entry).group(1))
        size *= members if operation == "reduce_scatter" else 1
        moved = (2 if operation == "all_reduce" else 1) * (members - 1) / members
        if size >= FEWEST:
            tables.add(operation, LINK_PEAK, ["members", "bytes"], [members, size],
                       moved * rate / LINK_PEAK, link=LINK, **XLA)


def main():
    xla, cudnn, deepgemm = sys.argv[1:]
    tables = Tables()
    with open(xla, "rb") as file:
        program = file.read()
    xla_products(xla_table(program, b"bf16xbf16->bf16", "sm_90"), "bf16xbf16->bf16", tables, PEAK, BF16, **XLA)
    narrow_products(deepgemm, tables)
    attention(cudnn, tables)
    memory(cudnn, tables)
    collectives(xla_table(program, b"network_throughput_bytes_per_sec: ", "sm_90"), tables)
    print(tables.text("H100, H200 and H800 SXM, bf16 and fp8",
                      "measured by OpenXLA (Apache-2.0), NVIDIA's cudnn-frontend (MIT) and DeepSeek's DeepGEMM (MIT), "
                      "carried over by forhopper.py; README.md says how they are read", CHECKED))


if __name__ == "__main__":
    main()
