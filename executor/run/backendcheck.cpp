// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/run/backendcheck.h"

#include "core/design/groupstages.h"
#include "core/design/stagecosts.h"
#include "core/design/stagestate.h"
#include "core/model/parallelism.h"
#include "core/model/transformer.h"
#include "core/predict/busqueues.h"
#include "core/program/compile.h"
#include "core/program/copycollectives.h"
#include "core/schedule/weightplan.h"
#include "executor/run/grouprun.h"
#include "executor/run/machinefit.h"
#include "executor/run/runsetup.h"
#include "executor/run/trainabledesign.h"
#include "executor/sharding/grouptraining.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <unistd.h>

namespace pipewright {

namespace {

bool wantsTimes(const RunMeans& means)
{
    return means.maths == RunOptions::Maths::Timed || means.maths == RunOptions::Maths::Synthetic || means.virtualClock;
}

void note(Diagnostics& found, std::string where, std::string what, std::string hint)
{
    found.push_back({Severity::Note, std::move(where), std::move(what), std::move(hint)});
}

/// Notes for what training does differently from the design.
void noteOfTraining(const Design& design, Diagnostics& found)
{
    if (const std::size_t pairs = design.schedule.overlaps.size(); pairs > 0)
        note(
            found, "schedule.overlaps",
            fmt::format("the blocks of {} overlapped pair{} train one after the other, and are predicted to run at the "
                        "same time",
                        pairs, pairs == 1 ? "" : "s"),
            "compare times with --maths timed, which runs them together, and their parts on two streams");
    if (const auto [bytes, device] = sparedByOneParameter(design.schedule, design.costs, design.dataflow); bytes > 0)
        note(found, "dataflow.shared",
             fmt::format("the embedding and the tied head on device {} are one matrix in the prediction, and two here: "
                         "{} more, with gradient and optimizer state",
                         device, formatSize(bytes)),
             "give the model a head of its own (\"tied_head\": false) where that does not fit");
}

void noteOfTimedBlocks(const Design& design, const RunMeans& means, Diagnostics& found)
{
    if (!means.virtualClock && !runsPartsOnTwoThreads(means) && design.costs.hasParts()
        && !design.schedule.overlaps.empty())
        note(found, "schedule.overlaps",
             fmt::format("with the {} backend the parts of overlapped pairs do not run: the blocks of a pair take its "
                         "time one after the other",
                         means.backend),
             "use --backend host, which runs them on two threads of each device, or the virtual clock");
    if (!means.virtualClock && means.backend != "host" && design.costs.hasBus())
        if (const Program program = compile(design.schedule, design.costs, design.dataflow); !program.busOfLink.empty())
            note(found, "costs.link.bus",
                 fmt::format("the {} backend emulates every link as if it had a wire of its own, so transfers do not "
                             "wait for {}",
                             means.backend, busNames(program)),
                 "use --backend host, or the virtual clock");
}

/// Only the virtual clock runs the transfers of a device one after the other.
void noteOfStreams(const Design& design, const RunMeans& means, Diagnostics& found)
{
    if (design.costs.communication == Communication::OneStream && !means.virtualClock)
        note(
            found, "costs.communication",
            fmt::format("the {} backend issues the transfers of a device in their order, and then lets them run beside "
                        "each other: none waits for the one before it, as on one stream, so the step may be shorter "
                        "than predicted",
                        means.backend),
            "use the virtual clock to see the predicted times, or --backend torch, whose ranks have one stream");
}

/// For a design that could be trained: why this machine cannot hold it, so that a large model is only tried on request.
Diagnostics whyNotHere(const Design& design)
{
    Design trained = trainableDesign(design);
    trained.workload = withWidened(*trained.workload, true);
    applyBytes(*trained.workload, trained.layersPerStage, trained.schedule.memoryChoices(), trained.costs);
    Diagnostics why = whyTooLarge(trained, peaksOf(compile(trained.schedule, trained.costs, trained.dataflow)), "host",
                                  {.host = static_cast<Bytes>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE)});
    for (Diagnostic& diagnostic : why)
        diagnostic.hint = "use --scale layers=N to train a smaller one, or --maths training to try";
    return why;
}

/// Notes for how timed blocks run groups.
void noteOfGroups(const Design& design, const RunMeans& means, Diagnostics& found)
{
    if (!hasGroups(design))
        return;
    const Diagnostics why = whyNoMembers(design);
    if (!why.empty())
        note(found, why.front().where, "every group runs as one device: " + why.front().what, why.front().hint);
    else if (!runsMembers(design, means))
        note(found, "cluster.devices",
             "timed blocks of processes with GPUs run every group as one device, with the times of its members",
             "use --backend cuda, or mpi without GPUs, to run member by member");
    else {
        Bytes bytes = 0;
        for (const SharedParameter& shared : design.dataflow.shared)
            bytes += shared.joinsStages() ? shared.bytes : 0;
        if (bytes == 0)
            return;
        note(
            found, "costs.reduce",
            fmt::format("members add the gradients of shared parameters up piece by piece, in the time of their links, "
                        "and not {} in {}",
                        exactSize(bytes), exactDuration(design.costs.reduce)),
            "look at the members' prediction, or give the model a head of its own (\"tied_head\": false)");
    }
}

/// What training on single devices knows of a design: it is done, or it says what a step costs, which training finds
/// out by itself. A field that is added to a design is refused until it is named here.
Design knownToTraining(const Design& design)
{
    Design known;
    const auto add = [](auto& to, const auto& from, auto... fields) { ((to.*fields = from.*fields), ...); };
    add(known, design, &Design::name, &Design::workload, &Design::layersPerStage, &Design::cluster,
        &Design::buildingBlock, &Design::plans);
    add(known.schedule, design.schedule, &Schedule::microbatches, &Schedule::deviceOfStage,
        &Schedule::replicaPlacements, &Schedule::dataParallelDevices, &Schedule::sequencePieces,
        &Schedule::shardedStates, &Schedule::zero, &Schedule::weightPolicy, &Schedule::recompute, &Schedule::offload);
    add(known.schedule, design.schedule, &Schedule::family, &Schedule::backward, &Schedule::firstStageMaySplit,
        &Schedule::order, &Schedule::overlaps, &Schedule::pins, &Schedule::partOrders, &Schedule::transferOrder,
        &Schedule::gathers);
    add(known.costs, design.costs, &Costs::stages, &Costs::microbatches, &Costs::link, &Costs::nodeLinks,
        &Costs::linkOfPair, &Costs::hostLink, &Costs::hostGaps, &Costs::communication, &Costs::overlapFactor,
        &Costs::reduce, &Costs::source);
    add(known.dataflow, design.dataflow, &Dataflow::skips, &Dataflow::shared);
    return known;
}

/// NCCL does not connect members on one GPU, so their collectives cannot be captured.
void refuseSharedGpus(const Design& design, const RunMeans& means, BackendCheck& check)
{
    const std::vector<GpuShare> shares = gpusOfRun(design, means);
    std::size_t next = 0;
    for (int d = 0; d < design.schedule.devices() && !shares.empty(); ++d) {
        const DeviceSpec& spec = design.cluster.devices[static_cast<std::size_t>(d)];
        std::set<int> gpus;
        const std::size_t members = spec.group ? spec.group->devices.size() : 1;
        for (std::size_t m = 0; m < members; ++m)
            gpus.insert(shares.at(next++).gpu);
        if (gpus.size() == members)
            continue;
        check.trains = false;
        check.found.push_back({Severity::Error, "--graphs",
                               fmt::format("{} members of device {} are on {} of the machine's GPUs: NCCL does not "
                                           "connect them, and copies that the host waits for cannot be captured",
                                           members, d, gpus.size()),
                               "give every member a GPU of its own, or leave --graphs out"});
    }
}

} // namespace

RunMeans meansOf(const RunOptions& options)
{
    return {options.backend, options.maths, options.clock == RunOptions::Clock::Virtual, options.gpus,
            options.runtime.captureBlocks};
}

Diagnostics whyNotTrainable(const Design& design)
{
    if (!design.workload)
        return {{Severity::Error, "workload", "the design has costs but no model, so there is nothing to train",
                 "use timed maths, or make the design from a model"}};
    const bool groups = hasGroups(design);
    Diagnostics why =
        groups ? sharding::whyGroupsDoNotTrain(design.workload->shape) : whyNotRunnable(design.workload->shape);
    if (groups) {
        if (hasUpdates(design.schedule) && design.workload->shape.experts > 0)
            why.push_back({Severity::Error, "model.experts",
                           "experts of groups have room for some tokens, and the reference of updates amid the step "
                           "has room for all",
                           "use a synchronous family, such as 1f1b, or single devices"});
        const Diagnostics members = whyNoMembers(design);
        why.insert(why.end(), members.begin(), members.end());
    }
    if (why.empty() && static_cast<int>(design.layersPerStage.size()) != design.schedule.stages())
        why.push_back({Severity::Error, "layersPerStage",
                       "the partition has another number of stages than the schedule",
                       "cut the model into as many stages as the schedule has"});
    if (std::any_of(design.costs.microbatches.begin(), design.costs.microbatches.end(),
                    [](const MicrobatchScale& scale) { return scale != MicrobatchScale{}; }))
        why.push_back({Severity::Error, "costs.microbatches",
                       "microbatches of different length are for timed runs: the built-in models' are all alike",
                       "use timed maths, or leave the scales out"});
    if (!groups && design.workload->shape.sequencePieces != design.schedule.sequencePieces)
        why.push_back({Severity::Error, "model.sequence_pieces",
                       fmt::format("the model is cut for {} pieces of a sequence, the schedule for {}",
                                   design.workload->shape.sequencePieces, design.schedule.sequencePieces),
                       "make the design anew with --pieces, or give both the same number"});
    if (why.empty() && !groups) { // a stage's output, added to another stage's input
        Costs ofModel;
        applyBytes(*design.workload, design.layersPerStage, design.schedule.memoryChoices(), ofModel);
        for (const SkipConnection& skip : design.dataflow.skips)
            if (const Bytes output = ofModel.stages[skip.fromStage].output; skip.bytes != output)
                why.push_back({Severity::Error, "dataflow.skips",
                               fmt::format("the skip connection from stage {} to stage {} carries {}, and the stage "
                                           "hands on {}",
                                           skip.fromStage, skip.toStage, exactSize(skip.bytes), exactSize(output)),
                               fmt::format("write \"bytes\": \"{}\", or use timed maths", exactSize(output))});
    }
    // Behind the reasons with a remedy of their own. Groups have a list of what their members run: whyNoMembers().
    if (why.empty() && !groups && !(knownToTraining(design) == design))
        why.push_back({Severity::Error, "design", "it holds what training does not know", "use timed maths"});
    return why;
}

Diagnostics notesOfTimes(const Diagnostics& why)
{
    Diagnostics notes;
    for (const Diagnostic& reason : why)
        note(notes, reason.where, "run with timed blocks instead of training: " + reason.what, reason.hint);
    return notes;
}

bool mayTrain(const Design& design, const RunMeans& means)
{
    return !wantsTimes(means) && whyNotTrainable(design).empty();
}

bool runsPartsOnTwoThreads(const RunMeans& means)
{
    return means.backend == "host" && !means.gpus;
}

BackendCheck checkForBackend(const Design& design, const RunMeans& means)
{
    BackendCheck check;
    if (std::find(std::begin(runBackends), std::end(runBackends), means.backend) == std::end(runBackends))
        throw Error("--for", "\"" + means.backend + "\" is no backend", "use host, mpi or cuda");
    if (design.workload)
        if (const Parallelism& parallel = design.workload->shape.parallel; parallel.devicesPerStage() > 1)
            check.found.push_back(
                {Severity::Error, "model.parallel",
                 fmt::format("a stage stands for {} devices ({}), which is predicted and cannot be run here",
                             parallel.devicesPerStage(), textOf(parallel)),
                 parallel.members() == 1
                     ? "make the design without copies to run it here; --backend torch runs copies of your module"
                     : "make the design without degrees of parallelism to run it"});
    if (!design.workload && CopyCollectives::areIn(design.schedule, hasUpdates(design.schedule), design.costs))
        check.found.push_back({Severity::Error, "costs.stages",
                               "stages exchange states with copies of the pipeline that are only counted, which is "
                               "predicted and cannot be run here",
                               "leave \"reduce_gradients\", \"gather\", \"gathered_parameters\" and "
                               "\"whole_gradients\" out to run it"});
    if (const auto besides = design.workload ? whyNotAllocated(design.workload->shape.framework) : std::nullopt) {
        check.found.push_back(*besides); // of timed blocks too, whose memory would be compared with the prediction
        return check;
    }
    if (!wantsTimes(means)) {
        Diagnostics why = whyNotTrainable(design);
        if (why.empty() && !hasGroups(design) && means.maths != RunOptions::Maths::Training && means.backend == "host")
            why = whyNotHere(design);
        check.trains = why.empty();
        // Of groups whose blocks were timed where training was meant, nobody would see what their members do.
        const bool ofGroups = hasGroups(design) && design.workload;
        if (means.maths != RunOptions::Maths::Training && ofGroups)
            for (Diagnostic& reason : why)
                reason.hint += "; or --maths timed, for blocks that only take their time";
        if (means.maths == RunOptions::Maths::Training || ofGroups)
            check.found.insert(check.found.end(), why.begin(), why.end());
        else
            for (Diagnostic& reason : notesOfTimes(why))
                check.found.push_back(std::move(reason));
    }
    if (means.graphs && !check.trains && !hasErrors(check.found))
        note(check.found, "--graphs", "blocks that only take their time are not captured as graphs",
             "leave --graphs out");
    // With processes, a GPU's number counts on the process's own machine, so equal numbers may be different GPUs.
    if (means.graphs && check.trains && means.backend == "cuda" && runsMembers(design, means))
        refuseSharedGpus(design, means, check);
    if (!check.trains && !hasErrors(check.found))
        noteOfGroups(design, means, check.found);
    if (!hasErrors(check.found))
        noteOfStreams(design, means, check.found);
    if (check.trains)
        noteOfTraining(design, check.found);
    else if (!hasErrors(check.found))
        noteOfTimedBlocks(design, means, check.found);
    return check;
}

} // namespace pipewright
