// SPDX-License-Identifier: GPL-3.0-or-later
// Builds the graph through a table from (pass, stage, microbatch) to block, which also shows blocks that are missing
// or placed twice; then checks the order on each device and links inputs. A deadlock is reported by following
// what each stopped device waits for until a device comes up again. O(blocks).
#include "core/schedule/ordergraph.h"

#include "core/schedule/recomputeblocks.h"
#include "core/schedule/replicas.h"

#include <fmt/format.h>

namespace pipewright {

namespace {

std::string place(int device, std::size_t position, const Block& block)
{
    return fmt::format("device {}, position {} ({})", device, position, toString(block));
}

void addError(Diagnostics& diagnostics, std::string where, std::string what, std::string hint = {})
{
    diagnostics.push_back({Severity::Error, std::move(where), std::move(what), std::move(hint)});
}

} // namespace

OrderGraph::OrderGraph(const Schedule& schedule, std::span<const SkipConnection> skips, bool allowMissing,
                       Diagnostics& diagnostics)
    : m_stages(schedule.stages()), m_microbatches(schedule.microbatches)
{
    if (!checkShape(schedule, skips, diagnostics))
        return;
    fillTable(schedule, diagnostics);
    if (!allowMissing)
        checkComplete(schedule, diagnostics);
    if (hasErrors(diagnostics))
        return;
    checkLocalOrder(schedule, diagnostics);
    checkPieceOrder(schedule, diagnostics);
    if (m_hasUpdates)
        checkUpdates(schedule, diagnostics);
    linkOverlaps(schedule, diagnostics);
    if (!hasErrors(diagnostics))
        linkInputs(skips);
}

bool OrderGraph::checkShape(const Schedule& schedule, std::span<const SkipConnection> skips,
                            Diagnostics& diagnostics) const
{
    const std::size_t before = diagnostics.size();
    if (schedule.microbatches < 1 || schedule.microbatches > maxMicrobatches)
        addError(diagnostics, "schedule.microbatches", fmt::format("{} microbatches", schedule.microbatches),
                 fmt::format("between 1 and {} are possible", maxMicrobatches));
    if (schedule.devices() < 1 || schedule.devices() > maxDevices)
        addError(diagnostics, "schedule.order", fmt::format("{} devices", schedule.devices()),
                 fmt::format("between 1 and {} are possible", maxDevices));
    if (schedule.stages() < 1)
        addError(diagnostics, "schedule.placement", "no stage is placed", "list the device of each stage");
    if (schedule.blocks() > maxBlocks
        || std::int64_t{4} * schedule.stages() * std::max(schedule.microbatches, 0) > 2 * maxBlocks)
        addError(diagnostics, "schedule",
                 fmt::format("{} stages x {} microbatches is more than {} blocks", schedule.stages(),
                             schedule.microbatches, maxBlocks),
                 "fewer microbatches or stages");
    for (int replica = 0; replica < schedule.replicas(); ++replica) {
        const std::vector<int>& placement = schedule.placement(replica);
        const std::string where =
            replica == 0 ? "schedule.placement" : fmt::format("schedule.placement of replica {}", replica);
        if (static_cast<int>(placement.size()) != schedule.stages())
            addError(diagnostics, where,
                     fmt::format("{} stages, replica 0 has {}", placement.size(), schedule.stages()),
                     "every replica has all stages");
        for (std::size_t stage = 0; stage < placement.size(); ++stage)
            if (placement[stage] < 0 || placement[stage] >= schedule.devices())
                addError(diagnostics, fmt::format("{}, stage {}", where, stage),
                         fmt::format("unknown device {}", placement[stage]),
                         fmt::format("devices are numbered 0 to {}", schedule.devices() - 1));
    }
    if (diagnostics.size() == before)
        for (Diagnostic& wrong : checkReplicas(schedule))
            diagnostics.push_back(std::move(wrong));
    if (schedule.microbatches % schedule.replicas() != 0)
        addError(diagnostics, "schedule.microbatches",
                 fmt::format("{} microbatches for {} replicas", schedule.microbatches, schedule.replicas()),
                 "the replicas share the microbatches equally: use a multiple");
    checkTurns(schedule, diagnostics);
    if (schedule.sequencePieces < 1 || schedule.microbatches % schedule.sequencePieces != 0)
        addError(diagnostics, "schedule.sequence_pieces",
                 fmt::format("{} microbatches cannot be sequences of {} pieces", schedule.microbatches,
                             schedule.sequencePieces),
                 "every piece counts as a microbatch: use a multiple of the pieces");
    if (!schedule.recompute.empty() && schedule.recompute.size() != schedule.deviceOfStage.size())
        addError(diagnostics, "schedule.recompute",
                 fmt::format("{} stages, \"placement\" has {}", schedule.recompute.size(), schedule.stages()),
                 "say none, selective or full for every stage");
    for (const SkipConnection& skip : skips)
        if (skip.fromStage < 0 || skip.toStage >= schedule.stages() || skip.fromStage >= skip.toStage)
            addError(diagnostics, "dataflow.skips",
                     fmt::format("skip connection from stage {} to stage {}", skip.fromStage, skip.toStage),
                     "it must lead from a stage to a later one");
    return diagnostics.size() == before;
}

void OrderGraph::checkTurns(const Schedule& schedule, Diagnostics& diagnostics) const
{
    if (schedule.dataParallelDevices.empty())
        return;
    if (schedule.dataParallelDevices.size() != schedule.deviceOfStage.size())
        addError(diagnostics, "schedule.in_turn",
                 fmt::format("{} stages, \"placement\" has {}", schedule.dataParallelDevices.size(), schedule.stages()),
                 "list the devices of every stage");
    for (std::size_t stage = 0; stage < schedule.dataParallelDevices.size(); ++stage) {
        const std::vector<int>& devices = schedule.dataParallelDevices[stage];
        const std::string where = fmt::format("schedule.in_turn, stage {}", stage);
        if (devices.empty())
            addError(diagnostics, where, "no device works on it", "name at least one");
        for (const int device : devices)
            if (device < 0 || device >= schedule.devices())
                addError(diagnostics, where, fmt::format("unknown device {}", device),
                         fmt::format("devices are numbered 0 to {}", schedule.devices() - 1));
        if (stage < schedule.deviceOfStage.size()
            && std::find(devices.begin(), devices.end(), schedule.deviceOfStage[stage]) == devices.end())
            addError(diagnostics, where,
                     fmt::format("device {} updates it and is none of them", schedule.deviceOfStage[stage]),
                     "let a device that works on the stage update it");
    }
    if (schedule.replicas() > 1)
        addError(diagnostics, "schedule.in_turn", "a schedule with replicas has its own way of sharing microbatches",
                 "use one of the two");
}

void OrderGraph::fillTable(const Schedule& schedule, Diagnostics& diagnostics)
{
    const auto count = static_cast<std::size_t>(schedule.blocks());
    blocks.reserve(count);
    deviceOfBlock.reserve(count);
    firstOfDevice.reserve(schedule.order.size() + 1);
    const std::size_t passes = schedule.recompute.empty() ? pipewright::indexOf(Op::R) : std::size_t{passCount};
    m_table.assign(passes * static_cast<std::size_t>(m_stages) * static_cast<std::size_t>(m_microbatches), noBlock);
    const int stages = m_stages,
              microbatches =
                  m_microbatches; // local, since the compiler must assume that writes to the table change members

    for (int device = 0; device < schedule.devices(); ++device) {
        firstOfDevice.push_back(static_cast<BlockIndex>(blocks.size()));
        const std::vector<Block>& order = schedule.order[device];
        blocks.insert(blocks.end(), order.begin(), order.end());
        deviceOfBlock.insert(deviceOfBlock.end(), order.size(), device);
        for (std::size_t position = 0; position < order.size(); ++position) {
            const Block& block = order[position];
            const auto here = [&] { return place(device, position, block); };
            const auto index = firstOfDevice.back() + static_cast<BlockIndex>(position); // blocks at fault count too
            if (block.stage < 0 || block.stage >= stages) {
                addError(diagnostics, here(), fmt::format("unknown stage {}", block.stage),
                         fmt::format("stages are numbered 0 to {}", m_stages - 1));
            } else if (block.microbatch < 0 || block.microbatch >= microbatches) {
                addError(diagnostics, here(), fmt::format("unknown microbatch {}", block.microbatch),
                         fmt::format("microbatches are numbered 0 to {}", m_microbatches - 1));
            } else if (const int replica = schedule.replicaOf(block.microbatch); block.replica != replica) {
                addError(diagnostics, here(),
                         fmt::format("microbatch {} belongs to replica {}", block.microbatch, replica),
                         fmt::format("write {}", toString(schedule.block(block.op, block.stage, block.microbatch))));
            } else if (block.op == Op::R && !schedule.recomputeOf(block.stage).byBlock()) {
                addError(diagnostics, here(), fmt::format("stage {} has no R blocks", block.stage),
                         "let the stage recompute by blocks (in a file: \"recompute\" of the schedule), or leave the "
                         "block out");
            } else if (const int home = schedule.deviceOf(block); home != device) {
                addError(diagnostics, here(), fmt::format("stage {} is held by device {}", block.stage, home),
                         fmt::format("move the block to device {}, or the whole stage here", home));
            } else if (!isPass(block.op)) {
                m_hasUpdates = true; // checkUpdates() looks at it
            } else {
                BlockIndex& slot = m_table[(pipewright::indexOf(block.op) * static_cast<std::size_t>(stages)
                                            + static_cast<std::size_t>(block.stage))
                                               * static_cast<std::size_t>(microbatches)
                                           + static_cast<std::size_t>(block.microbatch)];
                if (slot != noBlock)
                    addError(diagnostics, here(), "the same block is placed twice",
                             fmt::format("it already stands at position {}; remove one", slot - firstOfDevice.back()));
                else
                    slot = index, ++m_placed[pipewright::indexOf(block.op)];
            }
        }
    }
    firstOfDevice.push_back(static_cast<BlockIndex>(blocks.size()));
}

void OrderGraph::checkComplete(const Schedule& schedule, Diagnostics& diagnostics) const
{
    const auto [forwards, fulls, inputs, weights, recomputes] = m_placed;
    const std::size_t cells = static_cast<std::size_t>(m_stages) * static_cast<std::size_t>(m_microbatches);
    const auto recomputing = static_cast<std::size_t>(std::count_if(
        schedule.recompute.begin(), schedule.recompute.end(), [](Recompute recompute) { return recompute.byBlock(); }));
    if (recomputes == recomputing * static_cast<std::size_t>(m_microbatches) && forwards == cells
        && (fulls == cells || (inputs == cells && weights == cells)))
        return; // the right number without duplicates: none is missing
    const auto missing = [&](Op op, int stage, int microbatch) {
        const Block block = schedule.block(op, stage, microbatch);
        addError(diagnostics, fmt::format("device {}", schedule.deviceOf(block)),
                 fmt::format("missing block {} ({})", toString(block), describe(op)),
                 "place it, or complete the schedule");
    };
    for (int stage = 0; stage < m_stages; ++stage)
        for (int microbatch = 0; microbatch < m_microbatches; ++microbatch) {
            if (indexOf(Op::F, stage, microbatch) == noBlock)
                missing(Op::F, stage, microbatch);
            if (schedule.recomputeOf(stage).byBlock() && indexOf(Op::R, stage, microbatch) == noBlock)
                missing(Op::R, stage, microbatch);
            const bool full = indexOf(Op::B, stage, microbatch) != noBlock;
            const bool input = indexOf(Op::I, stage, microbatch) != noBlock;
            const bool weight = indexOf(Op::W, stage, microbatch) != noBlock;
            if (full)
                continue;
            if (!input && !weight && schedule.backward == BackwardStyle::Full) {
                missing(Op::B, stage, microbatch);
                continue;
            }
            if (!input)
                missing(Op::I, stage, microbatch);
            if (!weight)
                missing(Op::W, stage, microbatch);
        }
}

void OrderGraph::checkLocalOrder(const Schedule& schedule, Diagnostics& diagnostics) const
{
    for (BlockIndex i = 0; i < blocks.size(); ++i) {
        const Block& block = blocks[i];
        const std::optional<Op> own = waitsFor(block.op);
        if (!own)
            continue;
        const int device = deviceOfBlock[i];
        const BlockIndex first = firstOfDevice[device];
        const auto here = [&] { return place(device, i - first, block); };
        const bool again = makesInputGrad(block.op) && indexOf(Op::R, block.stage, block.microbatch) != noBlock;
        const BlockIndex input = indexOf(again ? Op::R : *own, block.stage, block.microbatch);
        if (isHalfBackward(block.op) && fullBackward(block.stage, block.microbatch) != noBlock)
            addError(diagnostics, here(), "the full backward of the same stage and microbatch is placed too",
                     fmt::format("keep either {} or its two halves",
                                 toString(schedule.block(Op::B, block.stage, block.microbatch))));
        else if (input != noBlock && input > i)
            addError(diagnostics, here(),
                     fmt::format("it needs {}, which comes later on the same device", toString(blocks[input])),
                     fmt::format("move it behind position {}", input - first));
        if (block.op == Op::I && block.stage == 0 && !schedule.firstStageMaySplit) {
            const BlockIndex weight = indexOf(Op::W, 0, block.microbatch);
            if (weight != noBlock && weight != i + 1)
                addError(diagnostics, here(),
                         fmt::format("the first stage may not split, and its {} does not follow at once",
                                     toString(blocks[weight])),
                         "allow the first stage to split (in a file: \"first_stage_may_split\": true), or join the "
                         "two: nothing waits for the input gradient of stage 0");
        }
    }
}

/// A piece's forward reads the keys and values of the pieces before it (causal attention), and its backward adds to
/// their gradients.
void OrderGraph::checkPieceOrder(const Schedule& schedule, Diagnostics& diagnostics) const
{
    if (schedule.sequencePieces == 1)
        return;
    for (BlockIndex i = 0; i < blocks.size(); ++i) {
        const Block& block = blocks[i];
        const int step = stageStep(block.op), piece = block.microbatch % schedule.sequencePieces;
        const bool forward = step > 0;
        if (step == 0 || piece == (forward ? 0 : schedule.sequencePieces - 1))
            continue;
        const int neighbour = block.microbatch - step;
        const BlockIndex input = forward ? indexOf(Op::F, block.stage, neighbour) : backwardOf(block.stage, neighbour);
        if (input != noBlock && input > i) {
            const BlockIndex first = firstOfDevice[deviceOfBlock[i]];
            addError(diagnostics, place(deviceOfBlock[i], i - first, block),
                     fmt::format("it needs {}, the {} piece of the same sequence, which comes later",
                                 toString(blocks[input]), forward ? "previous" : "next"),
                     "forwards of a sequence run in ascending order, backwards in descending order");
        }
    }
}

/// An update stands behind the backward of its own microbatch, and once only.
void OrderGraph::checkUpdates(const Schedule& schedule, Diagnostics& diagnostics) const
{
    std::vector<Block> seen;
    for (BlockIndex i = 0; i < blocks.size(); ++i) {
        const Block& block = blocks[i];
        if (block.op != Op::U)
            continue;
        seen.push_back(block);
        const BlockIndex first = firstOfDevice[deviceOfBlock[i]];
        const BlockIndex full = indexOf(Op::B, block.stage, block.microbatch);
        const BlockIndex gradient = full != noBlock ? full : indexOf(Op::W, block.stage, block.microbatch);
        if (gradient != noBlock && gradient > i && deviceOfBlock[gradient] == deviceOfBlock[i])
            addError(diagnostics, place(deviceOfBlock[i], i - first, block),
                     fmt::format("it needs {}, which comes later on the same device", toString(blocks[gradient])),
                     fmt::format("move it behind position {}", gradient - first));
    }
    std::sort(seen.begin(), seen.end());
    if (const auto twice = std::adjacent_find(seen.begin(), seen.end()); twice != seen.end())
        addError(diagnostics, "schedule.order", fmt::format("{} is placed twice", toString(*twice)),
                 "remove one of them");
    if (schedule.replicas() > 1)
        addError(diagnostics, "schedule.replica_placements", "update blocks in a schedule with replicas",
                 "leave the update blocks out: the replicas' gradients are summed and applied once, at the end");
    if (!schedule.recompute.empty() && !mayRecompute(schedule))
        addError(
            diagnostics, "schedule.recompute", "stages that recompute, and pass their weights on after each block",
            "keep the weights on every worker's device (another --layout): recomputation reads those of the forward");
    if (schedule.sequencePieces > 1)
        addError(diagnostics, "schedule.sequence_pieces", "update blocks in a schedule that cuts sequences",
                 "leave the update blocks out: the pieces of a sequence need the same weights");
}

void OrderGraph::linkOverlaps(const Schedule& schedule, Diagnostics& diagnostics)
{
    if (schedule.overlaps.empty())
        return;
    overlapsNext.assign(blocks.size(), 0);
    for (const Overlap& pair : schedule.overlaps) {
        const auto known = [&](const Block& b) {
            return isPass(b.op) && b.stage >= 0 && b.stage < m_stages && b.microbatch >= 0
                   && b.microbatch < m_microbatches;
        };
        const auto where = [&] {
            return fmt::format("schedule.overlaps, {}&{}", toString(pair.first), toString(pair.second));
        };
        const BlockIndex first =
            known(pair.first) ? indexOf(pair.first.op, pair.first.stage, pair.first.microbatch) : noBlock;
        const BlockIndex second =
            known(pair.second) ? indexOf(pair.second.op, pair.second.stage, pair.second.microbatch) : noBlock;
        if (first == noBlock || second != first + 1 || deviceOfBlock[first] != deviceOfBlock[second])
            addError(diagnostics, where(), "the two do not stand one behind the other on one device",
                     "place them together, or remove the overlap");
        else if (pair.first.microbatch / schedule.sequencePieces == pair.second.microbatch / schedule.sequencePieces)
            addError(diagnostics, where(), "blocks of the same microbatch cannot run at the same time",
                     "overlap blocks of different microbatches");
        else if (overlapsNext[first] != 0 || (first > 0 && overlapsNext[first - 1] != 0) || overlapsNext[second] != 0)
            addError(diagnostics, where(), "a block overlaps with two others", "keep one of the pairs");
        else
            overlapsNext[first] = 1;
    }
}

void OrderGraph::linkInputs(std::span<const SkipConnection> skips)
{
    chainInput.resize(blocks.size(), noBlock);
    for (BlockIndex i = 0; i < blocks.size(); ++i) {
        const Block& block = blocks[i];
        const int step = stageStep(block.op), from = block.stage - step;
        const bool forward = step > 0;
        if (step == 0)
            continue;
        if (from >= 0 && from < m_stages)
            chainInput[i] = forward ? indexOf(Op::F, from, block.microbatch) : backwardOf(from, block.microbatch);
        for (std::uint32_t s = 0; s < skips.size(); ++s) {
            const SkipConnection& skip = skips[s];
            if ((forward ? skip.toStage : skip.fromStage) != block.stage)
                continue;
            const BlockIndex input =
                forward ? indexOf(Op::F, skip.fromStage, block.microbatch) : backwardOf(skip.toStage, block.microbatch);
            if (input != noBlock)
                skipInputs.push_back({i, input, s, SkipInput::Kind::Skip});
        }
    }
}

OrderRun runOrder(const OrderGraph& graph)
{
    return runOrder(
        graph, {}, [](BlockIndex) { return Nanoseconds{0}; }, [](BlockIndex, BlockIndex) { return Nanoseconds{0}; });
}

Diagnostics describeCycle(const OrderGraph& graph, const std::vector<BlockIndex>& nextOfDevice, const OrderRun& run)
{
    const auto inputMissing = [&](BlockIndex unit) {
        for (BlockIndex block = unit; block < unit + graph.unitSize(unit); ++block) {
            if (graph.chainInput[block] != noBlock && !run.ran(graph.chainInput[block]))
                return graph.chainInput[block];
            for (const auto& skip : graph.skipInputs)
                if (skip.block == block && !run.ran(skip.input))
                    return skip.input;
        }
        return noBlock;
    };
    const auto deviceOf = [&](BlockIndex block) { return static_cast<std::size_t>(graph.deviceOfBlock[block]); };
    const auto where = [&](BlockIndex block) {
        return place(graph.deviceOfBlock[block], block - graph.firstOfDevice[deviceOf(block)], graph.blocks[block]);
    };

    // Every stopped device waits for a block of a stopped device, so following the waits ends in a cycle.
    std::size_t device = 0;
    while (nextOfDevice[device] >= graph.firstOfDevice[device + 1])
        ++device;
    std::vector<std::size_t> path;
    std::vector<int> visitedAt(nextOfDevice.size(), -1);
    while (visitedAt[device] < 0) {
        visitedAt[device] = static_cast<int>(path.size());
        path.push_back(device);
        device = deviceOf(inputMissing(nextOfDevice[device]));
    }
    path.erase(path.begin(), path.begin() + visitedAt[device]);

    std::string story;
    for (const std::size_t d : path) {
        const BlockIndex block = nextOfDevice[d];
        const BlockIndex input = inputMissing(block);
        const BlockIndex ahead = nextOfDevice[deviceOf(input)];
        if (!story.empty())
            story += ", which ";
        story += fmt::format("{} waits for {} of device {}", toString(graph.blocks[block]),
                             toString(graph.blocks[input]), graph.deviceOfBlock[input]);
        if (ahead != input)
            story += fmt::format(", which stands behind {}", toString(graph.blocks[ahead]));
        if (ahead == block)
            break;
    }
    const BlockIndex first = nextOfDevice[path.front()];
    return {{Severity::Error, where(first), fmt::format("the orders of the devices wait for each other: {}", story),
             fmt::format("move {} before {}", toString(graph.blocks[inputMissing(first)]),
                         toString(graph.blocks[nextOfDevice[deviceOf(inputMissing(first))]]))}};
}

} // namespace pipewright
