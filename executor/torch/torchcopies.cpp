// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/torch/torchcopies.h"

#include "core/base/units.h"
#include "core/model/parallelism.h"
#include "core/program/copycollectives.h"
#include "core/schedule/weightplan.h"

#include <fmt/format.h>

namespace pipewright {

namespace {

int countedCopies(const Design& design)
{
    return design.workload ? design.workload->shape.parallel.data : 1;
}

/// What is run of the degrees of a model, and of the states that copies share out. Anything else is refused.
void requireKnown(const Design& design)
{
    const Parallelism& parallel = design.workload->shape.parallel;
    if (const Parallelism known{.data = parallel.data, .overlap = parallel.overlap}; !(parallel == known))
        throw Error("model.parallel",
                    "the devices of this design are groups, or share out experts: " + textOf(parallel),
                    "make the design with --data-parallel alone; your module may use DTensor itself");
    const Zero& zero = design.schedule.zero;
    if (Zero known = zero; zero.sharesGradients()) {
        known.reduce = Zero::Reduce::Last;
        if (!(zero == known))
            throw Error("schedule.zero", "PyTorch's schedule runtime sums the gradients of a stage once per step",
                        "make the design with --reduce last");
    }
    for (const SharedParameter& shared : design.dataflow.shared) {
        if (!shared.joinsStages() || !countsCopies(design))
            continue;
        if (const auto& deviceOf = design.schedule.deviceOfStage;
            deviceOf[shared.rootStage] == deviceOf[shared.otherStage])
            throw Error("dataflow.shared",
                        fmt::format("stages {} and {} of one device hold one parameter, which copies cannot sum twice",
                                    shared.rootStage, shared.otherStage),
                        "untie them, or take a family with one stage per device");
    }
}

} // namespace

bool countsCopies(const Design& design)
{
    return countedCopies(design) > 1;
}

int copiesOf(const Design& design, const TorchOptions& options)
{
    return countsCopies(design) ? countedCopies(design) : options.replicas;
}

void requirePossibleCopies(const Design& design, const TorchOptions& options)
{
    const bool counted = countsCopies(design);
    if (counted && options.replicas > 1 && options.replicas != countedCopies(design))
        throw Error("--replicas",
                    fmt::format("{} copies, and the design counts {}", options.replicas, countedCopies(design)),
                    "leave it out, or make the design with another --data-parallel");
    const char* const where = counted ? "model.parallel.data" : "--replicas";
    if (copiesOf(design, options) > 1 && options.syntheticStages)
        throw Error(where, "stages that take the design's times have no gradients to share",
                    counted ? "give your module with --module, or make the design without --data-parallel"
                            : "give your module with --module");
    if (copiesOf(design, options) > 1 && hasUpdates(design.schedule))
        throw Error(where, "the weights of this schedule are updated amid the step, where gradients are not summed",
                    "take a family that updates at the step's end, such as 1f1b");
    if (design.workload)
        requireKnown(design);
    else if (CopyCollectives::areIn(design.schedule, hasUpdates(design.schedule), design.costs))
        throw Error("costs.stages",
                    "stages exchange states with copies of the pipeline, and nothing says how many there are",
                    "give the design a model with \"parallel\": {\"data\": N}, or leave \"reduce_gradients\", "
                    "\"gather\", \"gathered_parameters\" and \"whole_gradients\" out");
}

Diagnostics notesOfCopies(const Design& design)
{
    const Zero& zero = design.schedule.zero;
    const auto note = [](std::string what, std::string hint = {}) {
        return Diagnostics{{Severity::Note, "schedule.zero", std::move(what), std::move(hint)}};
    };
    if (!countsCopies(design) || zero.level == 0)
        return {};
    if (zero.sharesParameters())
        return zero.reshard.any()
                   ? note("PyTorch's fully_shard gathers into a buffer of its own and copies what is in it: while "
                          "parameters come, they are held twice")
                   : Diagnostics{};
    if (!zero.sharesGradients())
        return note("every copy gets whole sums of gradients and not its share alone, and updates whole parameters: "
                    "the sums take longer than predicted, and the shares are not quite even");
    Bytes shares = 0;
    for (const StageCosts& stage : design.costs.stages)
        shares += stage.parameters / countedCopies(design);
    return note(fmt::format("PyTorch's fully_shard holds a copy's shares of the parameters beside the whole ones: {} "
                            "more over all devices",
                            formatSize(shares)),
                "level 3 without --reshard gathers as rarely");
}

} // namespace pipewright
