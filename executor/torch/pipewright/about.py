# SPDX-License-Identifier: GPL-3.0-or-later
"""What PyTorch in this Python can run, as one line of JSON: `python -m pipewright.about --record PLACE`."""

import argparse
import platform

from .record import Stream


def about():
    try:
        import torch
        import torch.distributed as dist
    except ImportError as error:
        return {"reason": f"Python {platform.python_version()} cannot import torch: {error}"}
    known = {"torch": torch.__version__, "python": platform.python_version(), "gpus": torch.cuda.device_count()}
    if not dist.is_available():
        return {**known, "reason": f"PyTorch {torch.__version__} was built without torch.distributed"}
    backends = [name for name, there in (("gloo", dist.is_gloo_available()), ("nccl", dist.is_nccl_available())) if there]
    if "gloo" not in backends:  # clocks, barriers and objects go over it
        return {**known, "reason": f"PyTorch {torch.__version__} was built without gloo"}
    return {**known, "backends": backends}


def main():
    parser = argparse.ArgumentParser(prog="python -m pipewright.about", description=__doc__)
    parser.add_argument("--record", required=True, metavar="PLACE", help="a folder, or fd:NUMBER")
    Stream(parser.parse_args().record, 0).line(about=about())


if __name__ == "__main__":
    main()
