# SPDX-License-Identifier: GPL-3.0-or-later
"""Compares a dump of `pipewright run --dump` with a peer: the same model of the `transformers` package.

A peer has `name`, `family`, `shape`, the package's `model`, its `parameters` by name, `idle` names (their gradient is
nothing but what rounding leaves), and
    fill(prefix, rounded)   the dump's parameters of that prefix into the model
    theirs(prefix, above)   the dump's tensors of that prefix under the package's names; `above`: check_decoder.py
    losses(step)            the mean loss of the step's batches, and what is added to it for gradients only
    probabilities(step)     of every row that comes to the loss
    matrices()              the names whose weights decay
    between_steps()         what else a step changes, from what its forwards did

Loss, probabilities (the softmax of the logits) and every gradient of the last step, at the dump's parameters before it,
and what all steps of AdamW change from the first parameters on, are held to the package's in double precision.
"""

import json

import torch

from check_dump import error, error_of_change, read_safetensors

BOUND = 1e-5  # of every tensor's norm; the run computed in fp32
# AdamW divides by the gradients' own size: where they are next to nothing, their last digits decide which way a weight goes.
STEP_BOUND = 1e-2
BF16_LOSS_BOUND = 1e-2
# In bf16 the run is as near to exact values as PyTorch's own model in bf16, give or take a factor: in the mean over
# tensors, and of every tensor, whose few elements leave more to chance. With experts only in the mean: a token between
# two of them goes to one or the other as values are rounded, there and here at other places.
BF16_BOUND, BF16_TENSOR_BOUND = 2, 4


def tensors_of(tensors, prefix):
    return {name[len(prefix):]: value for name, value in tensors.items() if name.startswith(prefix)}


def gradients(peer, step):
    peer.model.zero_grad()
    loss, term = peer.losses(step)
    (loss + term).backward()
    return loss.item(), {name: parameter.grad.double().clone() for name, parameter in peer.parameters.items()}


def probabilities(peer, step):
    with torch.no_grad():
        return peer.probabilities(step).double().flatten()


def adam_steps(peer, settings, steps, computed=torch.float64, rounded=False):
    """The first parameters, and what steps of PyTorch's AdamW make of them, in double precision.

    `computed`: what the model computes in. `rounded`: each time it reads them as bf16 holds them.
    """
    peer.model.double()
    peer.fill("parameters.first/")
    decaying = peer.matrices()
    names = {id(value): name for name, value in peer.parameters.items()}  # a tied one once
    masters = {name: peer.parameters[name].detach().clone().requires_grad_() for name in names.values()}
    groups = [dict(params=[value for name, value in masters.items() if (name in decaying) == decays],
                   weight_decay=settings["weight_decay"] if decays else 0) for decays in (True, False)]
    optimizer = torch.optim.AdamW(groups, lr=settings["adamw_learning_rate"],
                                  betas=(settings["beta1"], settings["beta2"]), eps=settings["epsilon"])
    first = {name: peer.parameters[name].detach().double().clone() for name in peer.parameters}
    peer.model.to(computed)
    for step in range(steps):
        with torch.no_grad():
            for name, master in masters.items():
                peer.parameters[name].copy_(master.bfloat16() if rounded else master)
        peer.model.zero_grad()
        sum(peer.losses(step)).backward()
        for name, master in masters.items():
            master.grad = peer.parameters[name].grad.double()
        optimizer.step()
        peer.between_steps()
    peer.model.double()
    return first, {name: masters[names[id(value)]].detach() for name, value in peer.parameters.items()}


def changes_off(peer, first, exact, after, steps):
    """By tensor, the error of what the steps changed."""
    return {name: error_of_change(after[name], first[name], exact[name], steps)
            for name in peer.parameters if name not in peer.idle}


def in_bf16(peer, tensors, settings):
    steps = tensors["losses"].shape[0]
    peer.fill("parameters.last/", rounded=True)
    loss, exact = gradients(peer, steps - 1)
    scores = probabilities(peer, steps - 1)
    peer.model.bfloat16()
    theirs = gradients(peer, steps - 1)[1]
    of_scores = [error(each, scores) for each in (tensors["probabilities"].flatten(), probabilities(peer, steps - 1))]
    ours = peer.theirs("gradients/")
    off = [{name: error(each[name], exact[name]) for name in exact if name not in peer.idle} for each in (ours, theirs)]
    first, after = adam_steps(peer, settings, steps, rounded=True)
    changed = [changes_off(peer, first, after, each, steps)
               for each in (peer.theirs("parameters.after/", above=1),
                            adam_steps(peer, settings, steps, torch.bfloat16, rounded=True)[1])]
    far = abs(tensors["losses"][steps - 1].item() - loss) / loss
    means = [sum(each.values()) / len(each) for each in off + changed]
    ratio, where = max((off[0][name] / max(off[1][name], means[1]), name) for name in off[0])
    print(f"tests/torch: {peer.name} in bf16 by {peer.family}: gradients {means[0]:.1e} off in the mean, PyTorch's "
          f"{means[1]:.1e}, at most {ratio:.1f} times as far ({where}); probabilities {of_scores[0]:.1e}, PyTorch's "
          f"{of_scores[1]:.1e}; loss {far:.1e}; {steps} steps of AdamW {means[2]:.1e} of their change, PyTorch's "
          f"{means[3]:.1e}")
    each_is_near = ratio <= BF16_TENSOR_BOUND or peer.shape.get("experts", 0) > 0
    return (means[0] <= BF16_BOUND * means[1] and each_is_near and far < BF16_LOSS_BOUND
            and of_scores[0] <= BF16_BOUND * of_scores[1] and means[2] <= BF16_BOUND * means[3])


def in_fp32(peer, tensors, settings):
    steps = tensors["losses"].shape[0]
    peer.fill("parameters.last/")
    loss, theirs = gradients(peer, steps - 1)
    worst, where = max((abs(tensors["losses"][steps - 1].item() - loss) / loss, "loss"),
                       (error(tensors["probabilities"].flatten(), probabilities(peer, steps - 1)), "probabilities"))
    for name, gradient in peer.theirs("gradients/").items():
        idle = float(name in peer.idle)  # such a gradient is small beside others
        off = error(gradient + idle, theirs[name] + idle)
        if off > worst:
            worst, where = off, name
    first, after = adam_steps(peer, settings, steps)
    changes = changes_off(peer, first, after, peer.theirs("parameters.after/", above=1), steps)
    changed, of = max((off, name) for name, off in changes.items())
    print(f"tests/torch: {peer.name} by {peer.family}: {len(theirs)} tensors, at most {worst:.1e} off ({where}); "
          f"{steps} steps of AdamW at most {changed:.1e} of their change ({of})")
    return worst < BOUND and changed < STEP_BOUND


def check_files(peer_of, paths):
    """Whether there are dumps and all are alike; `peer_of(metadata, tensors)` makes a dump's peer."""
    results = []
    for path in paths:
        metadata, tensors = read_safetensors(path)
        peer = peer_of(metadata, tensors)
        how = in_bf16 if peer.shape["data_type"] == "bf16" else in_fp32
        results.append(how(peer, tensors, json.loads(metadata["optimizer"])))
    return bool(results) and all(results)
