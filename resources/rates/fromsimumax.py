#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes a file of rates from a table that the authors of SimuMax measured, and XLA's products in FP8.

    fromsimumax.py b200_bf16_ceperm.json [xla_cuda_plugin.so] > b200-sxm.json

The table is configs/system/b200_bf16_ceperm.json of https://github.com/MooreThreads/SimuMax (Apache-2.0) at commit
4dcaae5, the program that of jax-cuda12-pjrt 0.8.1 (PyPI, Apache-2.0). Only figures are carried over; what they are
figures of is said in README.md beside this file.
"""
import json
import sys

from ratestables import Tables, xla_products, xla_table

WHEN = "2026"
SOURCE = "SimuMax, configs/system/b200_bf16_ceperm.json at 4dcaae5"
XLA = {"source": "OpenXLA, tables of sm_100 as in jax-cuda12-pjrt 0.8.1", "when": "2025"}
FP8_PEAK = 4500e12
LINK = "NVLink 5"  # as the presets of clusters name it
MEMBERS = (2, 4, 8)  # of one node
# How far steps predicted by these rates were from measured ones; core.design.tst_knownerror compares it with the page.
PAGE = "resources/experiments/published-steps-b200.md"
CHECKED = [{"products": "own", "runs": 16, "median": 0.082, "largest": 0.156, "of": "Megatron on B200", "where": PAGE},
           {"products": "fp8", "runs": 3, "median": 0.138, "largest": 0.245, "of": "Megatron-Bridge on B200",
            "where": PAGE}]


def fields(key):
    return dict(part.strip().split("=") for part in key.split(","))


def add(tables, *figures, **kind):
    tables.add(*figures, source=SOURCE, when=WHEN, **kind)


def products(operations, tables):
    measured = operations["matmul"]
    for key, share in measured["accurate_efficient_factor"].items():
        of = fields(key)
        types = "bf16+" + of["out_dtype"] if of["accumulate"] == "True" else of["out_dtype"]
        add(tables, "product", measured["tflops"] * 1e12, ["rows", "inner", "columns"],
            [int(of["m"]), int(of["k"]), int(of["n"])], share, layout=of["layout"], types=types)


def grouped_products(operations, tables):
    """Their keys have the forward's sizes in every pass; here each pass has those of its own product."""
    measured = operations["group_matmul"]
    for key, share in measured["accurate_efficient_factor"].items():
        of = fields(key)
        rows, columns, inner = int(of["M"]), int(of["N"]), int(of["K"])
        layout, sizes, types = {
            "fwd": ("TN", [rows, inner, columns], "bf16"),
            "bwd_grad_act": ("NN", [rows, columns, inner], "bf16"),
            "bwd_grad_w": ("NT", [columns, rows, inner], "bf16+" + of["main_grad_dtype"]),
        }[of["stage"]]
        add(tables, "grouped_product", measured["tflops"] * 1e12, ["experts", "rows", "inner", "columns"],
            [int(of["ng"])] + sizes, share, layout=layout, types=types)


def attention(operations, tables):
    """Their shares are of whole squares of scores; here a causal mask's are of the half that it leaves."""
    for name, operation in (("sdp_fwd", "attention_forward"), ("sdp_bwd", "attention_backward")):
        measured = operations[name]
        for key, share in measured["accurate_efficient_factor"].items():
            of = fields(key)
            if of["qkv_contiguous"] != "True":
                continue
            add(tables, operation, measured["tflops"] * 1e12,
                ["heads", "key_value_heads", "query_size", "value_size", "length"],
                [int(of[field]) for field in ("head_num", "kv_head_num", "qk_head_dim", "v_head_dim", "seq_len")],
                share / 2, layout="causal", types="bf16")


def memory(bandwidth, tables):
    for layout, name in (("elementwise", "default"), ("permutation", "permute_fwd"), ("loss", "ce_fusion")):
        add(tables, "memory", bandwidth[name]["gbps"] * 1e9, [], [], bandwidth[name]["efficient_factor"],
            bandwidth[name]["latency_us"] / 1e6, layout=layout)


def collectives(network, tables):
    """Their latency counts once for every step of a ring, beside one that is fixed or goes by the number of members."""
    peak = network["bandwidth"]["gbps"] * 1e9
    for name, operation in (("all_reduce", "all_reduce"), ("all_gather", "all_gather"),
                            ("reduce_scatter", "reduce_scatter"), ("all2all", "all_to_all")):
        of = network["op"][name]
        for members in MEMBERS:
            steps = (members - 1) * of["scale"]
            fixed = of["fixed_latency_us_by_comm_num"].get(str(members), of["fixed_latency_us"])
            add(tables, operation, peak, ["members"], [members], of["efficient_factor"],
                (steps * of["latency_us"] + fixed) / 1e6, link=LINK)
    of = network["op"]["p2p"]  # its bytes go both ways at once
    add(tables, "send", peak, [], [], of["efficient_factor"] / 2, of["latency_us"] / 1e6, link=LINK)


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        system = json.load(file)
    tables = Tables()
    operations = system["accelerator"]["op"]
    products(operations, tables)
    grouped_products(operations, tables)
    attention(operations, tables)
    memory(system["accelerator"]["bandwidth"], tables)
    collectives(system["networks"]["high_intra_node"], tables)
    if len(sys.argv) > 2:
        with open(sys.argv[2], "rb") as file:
            text = xla_table(file.read(), b"bf16xbf16->bf16", "sm_100")
        xla_products(text, "f8e4m3fnxf8e4m3fn->bf16", tables, FP8_PEAK, ("fp8", "fp8+fp32"), **XLA)
    print(tables.text("B200 SXM, bf16 and fp8",
                      "measured by the authors of SimuMax (MooreThreads, Apache-2.0), products in FP8 by OpenXLA "
                      "(Apache-2.0); carried over by fromsimumax.py; README.md says how they are read", CHECKED))


if __name__ == "__main__":
    main()
