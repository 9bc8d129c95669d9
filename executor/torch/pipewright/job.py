# SPDX-License-Identifier: GPL-3.0-or-later
"""The common start of this package's programs: their command line, the job that it names, and PyTorch."""

import argparse
import json

from .errors import Refused, no_torch


def parser_of(program, text):
    parser = argparse.ArgumentParser(prog=f"python -m pipewright.{program}", description=text,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("job")
    parser.add_argument("--record", required=True, metavar="PLACE", help="a folder, or fd:NUMBER")
    return parser


def read(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def with_pipelining(stream):
    """PyTorch; raises Refused if it, or its pipelining, cannot be imported."""
    stream.line(at="importing torch")
    try:
        import torch
        from torch.distributed import pipelining  # noqa: F401
    except ImportError as error:
        raise no_torch(error) from error
    return torch


def chosen_device(torch, wanted):
    """The one device of a process that is no rank: `wanted` is auto, host or cuda."""
    if wanted not in ("auto", "host", "cuda"):
        raise Refused("--device", f'"{wanted}" is none that is known', "use auto, host or cuda")
    gpu = torch.cuda.is_available() and wanted != "host"
    if wanted == "cuda" and not gpu:
        raise Refused("--device", "PyTorch finds no GPU", "use --device host")
    return torch.device("cuda" if gpu else "cpu")
