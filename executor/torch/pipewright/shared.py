# SPDX-License-Identifier: GPL-3.0-or-later
"""Parameters that layers of several stages hold: a head tied to its embedding, a block that is used again.

Every rank builds the whole module and keeps its stages, so it has a copy of such a parameter. After a step's backwards
the copies' gradients are summed over their ranks, and equal optimizers then keep the copies equal. Stages of one rank
hold one and the same tensor; the first of them updates it. Where copies of the pipeline share out gradients, the ranks of
one copy have equal shares of the parameter, and sum those.
"""

from .errors import Refused
from .replicas import local, plain_name


class Shared:
    """One parameter and its places: (layer, name in it), by layer."""

    def __init__(self, parameter, places):
        self.parameter, self.places = parameter, places

    @property
    def trained(self):
        return self.parameter.requires_grad

    def stages(self, stage_of_layer):
        return sorted({stage_of_layer[layer] for layer, _ in self.places})


def shared_parameters(layers):
    """Those that more than one of the layers hold, in the order of their first places."""
    found = {}
    for number, layer in enumerate(layers):
        for name, parameter in layer.named_parameters(remove_duplicate=True):
            found.setdefault(id(parameter), Shared(parameter, [])).places.append((number, name))
    return [each for each in found.values() if len({layer for layer, _ in each.places}) > 1]


def stage_names(counts):
    """Per layer its stage and its number in it."""
    return [(stage, number) for stage, count in enumerate(counts) for number in range(count)]


class Tied:
    """One trained parameter of several stages: per stage its name in the stage's module."""

    def __init__(self, names):
        self.names = names

    @property
    def stages(self):
        return sorted(self.names)

    def text(self):
        return ", ".join(f"stage {stage} {name}" for stage, name in sorted(self.names.items()))


def tied_over_stages(layers, counts):
    """The trained parameters that several stages of `counts` layers hold."""
    at, result = stage_names(counts), []
    for shared in shared_parameters(layers):
        names = {}
        for layer, name in shared.places:
            stage, number = at[layer]
            names.setdefault(stage, f"{number}.{name}")
        if shared.trained and len(names) > 1:
            result.append(Tied(names))
    return result


def refuse_updates_amid_the_step(tied, place, rule):
    """Where stages are updated one by one there is no moment at which their gradients are together."""
    if tied:
        raise Refused(place, f"stages hold one parameter ({tied[0].text()}), and {rule} updates every stage at a time of "
                      "its own, so that their gradients are never together",
                      "give each its own (untie them), or take a family that updates at the step's end, such as 1f1b")


class StageSums:
    """The sums of one rank. All ranks make the same groups in the same order."""

    def __init__(self, dist, tied, rank_of_stage, rank, copies, devices, backend, timeout):
        """`rank_of_stage`: within a copy of the pipeline, of which there are `copies` with `devices` ranks each."""
        self._dist, self._mine = dist, []
        for one in tied:
            owners = sorted({rank_of_stage[stage] for stage in one.stages})
            for copy in range(copies):
                ranks = [copy * devices + owner for owner in owners]
                group = dist.new_group(ranks, backend=backend, timeout=timeout) if len(ranks) > 1 else None
                if rank in ranks:
                    self._mine.append((one, group))

    def sum(self, modules, recorder):
        """Sums the gradients of this rank's copies; a copy without one counts as zero."""
        for one, group in self._mine:
            stage = next(stage for stage in one.stages if stage in modules)
            parameter = parameter_of(modules[stage], one.names[stage])
            if group is None:
                continue
            if parameter.grad is None:
                parameter.grad = parameter.new_zeros(parameter.shape)
            here = local(parameter.grad)
            begun = recorder.exchange_begins("all_reduce over stages")
            self._dist.all_reduce(here, group=group)
            recorder.exchange_ends(begun, here.nbytes)


def parameter_of(module, name):
    """A stage's parameter by its name in the stage, also where a wrapper adds to the name."""
    return next(parameter for key, parameter in module.named_parameters() if plain_name(key) == name)
