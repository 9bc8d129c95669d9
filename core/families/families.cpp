// SPDX-License-Identifier: GPL-3.0-or-later
// The table of families and the checks that all of them share.
#include "core/base/formattedtext.h"
#include "core/families/family.h"

#include "core/schedule/replicas.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

// The table: one line per family. Each names a function in a file of its own in this folder.
#define PIPEWRIGHT_FAMILIES(FAMILY)                                                                                    \
    FAMILY(gpipe)                                                                                                      \
    FAMILY(oneForwardOneBackward)                                                                                      \
    FAMILY(eagerOneForwardOneBackward)                                                                                 \
    FAMILY(interleaved)                                                                                                \
    FAMILY(combined)                                                                                                   \
    FAMILY(loopedBreadthFirst)                                                                                         \
    FAMILY(zeroBubbleH1)                                                                                               \
    FAMILY(zeroBubbleH2)                                                                                               \
    FAMILY(zeroBubbleAuto)                                                                                             \
    FAMILY(zeroBubbleV)                                                                                                \
    FAMILY(vMin)                                                                                                       \
    FAMILY(vHalf)                                                                                                      \
    FAMILY(vZeroBubble)                                                                                                \
    FAMILY(oneForwardOneBackwardV)                                                                                     \
    FAMILY(adaptiveV)                                                                                                  \
    FAMILY(chimera)                                                                                                    \
    FAMILY(hanayo)                                                                                                     \
    FAMILY(dualPipe)                                                                                                   \
    FAMILY(dualPipeV)                                                                                                  \
    FAMILY(seq1F1B)                                                                                                    \
    FAMILY(pipeDream)                                                                                                  \
    FAMILY(pipeDream2BW)                                                                                               \
    FAMILY(asynchronous)                                                                                               \
    FAMILY(pipeOptim)                                                                                                  \
    FAMILY(specTrain)                                                                                                  \
    FAMILY(xpipe)                                                                                                      \
    FAMILY(dataParallel)                                                                                               \
    FAMILY(cyclicV1)                                                                                                   \
    FAMILY(cyclicV2)

namespace pipewright {

#define PIPEWRIGHT_DECLARE(name) Family name();
PIPEWRIGHT_FAMILIES(PIPEWRIGHT_DECLARE)
#undef PIPEWRIGHT_DECLARE

namespace {

void checkCopies(const Family& family, const FamilyParameters& p, Diagnostics& diagnostics)
{
    const auto bad = [&](std::string what, std::string hint) {
        diagnostics.push_back({Severity::Error, "--replicas", std::move(what), std::move(hint)});
    };
    if (p.replicas == 1)
        return;
    if (p.replicas < 1)
        bad(fmt::format("{} replicas", p.replicas), "use 1 or more copies of the pipeline");
    else if (family.updates)
        bad(fmt::format("{} updates its stages amid the step", family.title),
            "the replicas' gradients are summed and applied once, at its end: use a synchronous family");
    else if (p.devices % p.replicas != 0 || p.microbatches % p.replicas != 0)
        bad(fmt::format("{} replicas of {} devices and {} microbatches", p.replicas, p.devices, p.microbatches),
            "--devices and --microbatches count those of all replicas: use multiples");
}

Diagnostics checkCommon(const Family& family, const FamilyParameters& p)
{
    Diagnostics diagnostics;
    const auto bad = [&](std::string option, std::string what, std::string hint) {
        diagnostics.push_back({Severity::Error, std::move(option), std::move(what), std::move(hint)});
    };
    if (p.devices < 1 || p.devices > maxDevices)
        bad("--devices", fmt::format("{} devices", p.devices), fmt::format("use 1 to {}", maxDevices));
    if (p.microbatches < 1 || p.microbatches > maxMicrobatches)
        bad("--microbatches", fmt::format("{} microbatches", p.microbatches),
            fmt::format("use 1 to {}", maxMicrobatches));
    checkCopies(family, p, diagnostics);
    if (p.chunks && *p.chunks < 1)
        bad("--chunks", fmt::format("{} chunks", *p.chunks), "use 1 or more stages per device");
    else if (p.chunks && *p.chunks != family.defaultChunks && !family.chunksSelectable)
        bad("--chunks", fmt::format("{} chunks", *p.chunks),
            fmt::format("{} has {} per device", family.title, family.defaultChunks));
    if (p.accumulate && !family.accumulates)
        bad("--accumulate", fmt::format("{} microbatches per update", *p.accumulate),
            fmt::format("{} updates {}", family.title,
                        family.dataParallel ? "after every worker's microbatch" : "once per step"));
    if (p.workers && !family.dataParallel)
        bad("--workers", fmt::format("{} workers", *p.workers),
            fmt::format("{} has none; dp, cdp-v1 and cdp-v2 do", family.title));
    if (p.layout != WorkerLayout::Pipeline && !family.dataParallel)
        bad("--layout", std::string(nameOf(p.layout)),
            fmt::format("{} has no workers to lay out; dp, cdp-v1 and cdp-v2 do", family.title));
    if (!family.updates && (p.optimizer || !(p.weights == WeightPolicy{})))
        bad("--optimizer", "a setting of updates amid the run",
            fmt::format("{} updates once per step: leave it out", family.title));
    if (p.pieces && !family.cutsSequences)
        bad("--pieces", fmt::format("{} pieces", *p.pieces),
            fmt::format("{} does not cut sequences; seq1f1b does", family.title));
    else if (p.pieces && (*p.pieces < 1 || *p.pieces > maxMicrobatches))
        bad("--pieces", fmt::format("{} pieces", *p.pieces), fmt::format("use 1 to {}", maxMicrobatches));
    if (p.forward < 0 || p.inputGrad < 0 || p.weightGrad < 0 || p.transfer < 0)
        bad("times", "a negative time", "use 0 or more");
    if (p.memoryLimit && !(*p.memoryLimit > 0))
        bad("--memory-limit", fmt::format("{}x", *p.memoryLimit), "use a positive factor such as 1.5x");
    if (hasErrors(diagnostics))
        return diagnostics;
    const int pieces = family.cutsSequences ? p.pieces.value_or(defaultSequencePieces) : 1;
    if (std::int64_t{p.microbatches} * pieces > maxMicrobatches)
        bad("--microbatches", fmt::format("{} microbatches of {} pieces", p.microbatches, pieces),
            fmt::format("at most {} pieces are possible in all", maxMicrobatches));
    const std::int64_t blocks = std::int64_t{p.devices} * p.chunks.value_or(family.defaultChunks) * p.microbatches
                                * pieces * (family.backward == BackwardStyle::Split ? 3 : 2) / p.replicas;
    if (blocks > maxBlocks)
        bad("--microbatches",
            fmt::format("{} devices x {} microbatches make {} blocks", p.devices, p.microbatches, blocks),
            fmt::format("at most {} are possible: use fewer microbatches, devices or chunks", maxBlocks));
    return diagnostics;
}

} // namespace

namespace {
constexpr std::string_view layoutName(WorkerLayout layout)
{
    switch (layout) {
    case WorkerLayout::Pipeline: return "pipeline";
    case WorkerLayout::Workers: return "workers";
    case WorkerLayout::Single: return "single";
    case WorkerLayout::Triangle: return "triangle";
    case WorkerLayout::Sharded: return "sharded";
    }
    return {};
}
static_assert(!layoutName(static_cast<WorkerLayout>(workerLayoutCount - 1)).empty()
                  && layoutName(static_cast<WorkerLayout>(workerLayoutCount)).empty(),
              "workerLayoutCount is the number of layouts");
} // namespace

std::string_view nameOf(WorkerLayout layout)
{
    return layoutName(layout);
}

std::optional<WorkerLayout> workerLayoutNamed(std::string_view name)
{
    for (int i = 0; i < workerLayoutCount; ++i)
        if (layoutName(static_cast<WorkerLayout>(i)) == name)
            return static_cast<WorkerLayout>(i);
    return std::nullopt;
}

std::span<const Family> families()
{
#define PIPEWRIGHT_ENTRY(name) name(),
    static const std::array table{PIPEWRIGHT_FAMILIES(PIPEWRIGHT_ENTRY)};
#undef PIPEWRIGHT_ENTRY
    return table;
}

const Family* findFamily(std::string_view name)
{
    for (const Family& family : families())
        if (family.name == name)
            return &family;
    return nullptr;
}

Schedule makeSchedule(std::string_view name, const FamilyParameters& parameters)
{
    const Family* family = findFamily(name);
    if (family == nullptr) {
        std::vector<std::string_view> known;
        for (const Family& f : families())
            known.push_back(f.name);
        throw Error("family", fmt::format("unknown family '{}'", name), fmt::format("known: {}", joined(known, ", ")));
    }
    Diagnostics diagnostics = checkCommon(*family, parameters);
    FamilyParameters ofCopy = parameters;
    if (!hasErrors(diagnostics)) {
        ofCopy.devices /= parameters.replicas;
        ofCopy.microbatches /= parameters.replicas;
        diagnostics = family->check(ofCopy);
    }
    if (hasErrors(diagnostics))
        throw Error(std::move(diagnostics));
    Schedule schedule = family->make(ofCopy);
    schedule.family = family->name;
    if (schedule.microbatches == 0)
        schedule.microbatches = ofCopy.microbatches;
    schedule.backward = family->backward;
    schedule = withReplicas(schedule, parameters.replicas);
    schedule.zero = parameters.zero;
    return schedule;
}

} // namespace pipewright
