// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/design/costs.h"

#include <algorithm>
#include <cmath>

namespace pipewright {

Costs::Costs() = default;
Costs::Costs(const Costs& other) = default;
Costs::Costs(Costs&& other) noexcept = default;
Costs& Costs::operator=(const Costs& other) = default;
Costs& Costs::operator=(Costs&& other) noexcept = default;
Costs::~Costs() = default;
bool Costs::operator==(const Costs& other) const = default;

void StageCosts::fillInTimes()
{
    for (const Op op : allOps)
        switch (op) {
        case Op::B: backward = inputGrad + weightGrad; break;
        case Op::R: recompute = forward; break;
        case Op::F:
        case Op::I:
        case Op::W:
        case Op::U: break;
        }
}

void StageCosts::lengthenBackward(Nanoseconds by)
{
    inputGrad = std::max<Nanoseconds>(0, inputGrad + by);
    backward = std::max<Nanoseconds>(0, backward + by);
    fitParts();
}

void StageCosts::fitParts()
{
    for (const Op op : allOps)
        pipewright::fitParts(parts[indexOf(op)], this->*timeField(op));
}

std::vector<BlockPart> StageCosts::partsOrWhole(Op op) const
{
    const std::vector<BlockPart>& list = parts[indexOf(op)];
    return list.empty()
               ? std::vector<BlockPart>{{std::string(timeKey(op)), this->*timeField(op), PartStream::Compute, true}}
               : list;
}

Nanoseconds LinkCosts::wireTime(Bytes bytes) const
{
    if (bytesPerSecond <= 0 || bytes <= 0)
        return 0;
    return std::llround(static_cast<double>(bytes) / bytesPerSecond * 1e9);
}

Nanoseconds Costs::duration(Op op, int stage) const
{
    return stages[stage].*timeField(op);
}

Nanoseconds Costs::duration(Op op, int stage, int microbatch) const
{
    const Nanoseconds usual = duration(op, stage);
    if (microbatches.empty() || !isPass(op))
        return usual;
    return std::llround(static_cast<double>(usual) * microbatches[microbatch].time);
}

std::span<const BlockPart> Costs::parts(Op op, int stage) const
{
    return stages[stage].parts[indexOf(op)];
}

bool Costs::hasParts() const
{
    return std::any_of(stages.begin(), stages.end(), [](const StageCosts& stage) {
        return std::any_of(stage.parts.begin(), stage.parts.end(), [](const auto& list) { return !list.empty(); });
    });
}

Nanoseconds Costs::hostGap(Op op, int device) const
{
    return static_cast<std::size_t>(device) < hostGaps.size() ? hostGaps[device].before[indexOf(op)] : 0;
}

bool Costs::hasHostGaps() const
{
    return std::any_of(hostGaps.begin(), hostGaps.end(), [](const HostGaps& gaps) {
        return std::any_of(gaps.before.begin(), gaps.before.end(), [](Nanoseconds gap) { return gap != 0; });
    });
}

Bytes Costs::scaled(Bytes bytes, int microbatch) const
{
    if (microbatches.empty())
        return bytes;
    return std::llround(static_cast<double>(bytes) * microbatches[microbatch].bytes);
}

const LinkCosts* NodeLinks::between(int from, int to) const
{
    if (std::max(from, to) >= std::ssize(nodeOfDevice) || nodeOfDevice[from] == nodeOfDevice[to])
        return nullptr;
    const Node &here = nodes[nodeOfDevice[from]], &there = nodes[nodeOfDevice[to]];
    return here.underSwitch == there.underSwitch ? &here.network : &here.beyondSwitch;
}

const LinkCosts& Costs::linkBetween(int fromDevice, int toDevice) const
{
    if (const auto pair = linkOfPair.find({fromDevice, toDevice}); pair != linkOfPair.end())
        return pair->second;
    const LinkCosts* ofNodes = nodeLinks.between(fromDevice, toDevice);
    return ofNodes != nullptr ? *ofNodes : link;
}

bool Costs::hasBus() const
{
    return !link.bus.empty() || std::any_of(linkOfPair.begin(), linkOfPair.end(), [](const auto& entry) {
        return !entry.second.bus.empty();
    }) || std::any_of(nodeLinks.nodes.begin(), nodeLinks.nodes.end(), [](const NodeLinks::Node& node) {
        return !node.network.bus.empty() || !node.beyondSwitch.bus.empty();
    });
}

void Costs::setAllLinks(LinkCosts every)
{
    link = std::move(every);
    nodeLinks = {};
    linkOfPair.clear();
}

const LinkCosts& Costs::slowestHop(int devices) const
{
    constexpr Bytes probe = Bytes{1} << 20;
    const LinkCosts* slowest = &link;
    for (int d = 1; nodeLinks.any() && d < devices; ++d)
        for (const LinkCosts* hop : {nodeLinks.between(d - 1, d), nodeLinks.between(d, d - 1)})
            if (hop != nullptr && hop->transferTime(probe) > slowest->transferTime(probe))
                slowest = hop;
    return *slowest;
}

Nanoseconds Costs::reduceTime(int device, int peer, Bytes bytes) const
{
    if (reduce != 0 || !nodeLinks.any() || device == peer)
        return reduce;
    return linkBetween(device, peer).transferTime(bytes) + linkBetween(peer, device).transferTime(bytes);
}

CostOrigin Costs::sourceOrigin() const
{
    return isFormula()                      ? CostOrigin::Formula
           : source.starts_with("measured") ? CostOrigin::Measured
                                            : CostOrigin::Given;
}

CostOrigin Costs::originOf(Op op, int stage) const
{
    const CostOrigin own = stages[stage].origin[indexOf(op)];
    return own == CostOrigin::AsSource ? sourceOrigin() : own;
}

double Costs::usualSpread(Op op) const
{
    double sum = 0;
    int known = 0;
    for (const StageCosts& stage : stages)
        if (const double spread = stage.spread[indexOf(op)]; spread > 0) {
            sum += spread;
            ++known;
        }
    return known == 0 ? 0 : sum / known;
}

bool Costs::hasSpread() const
{
    return std::any_of(allOps.begin(), allOps.end(), [this](Op op) { return usualSpread(op) > 0; });
}

Costs uniformCosts(const DeviceWorth& worth, int stages, int chunks)
{
    const Nanoseconds share = (worth.perChunk ? 1 : chunks) * Nanoseconds{worth.pieces};
    StageCosts stage;
    stage.forward = worth.forward / share;
    stage.inputGrad = worth.inputGrad / share;
    stage.weightGrad = worth.weightGrad / share;
    stage.fillInTimes();
    stage.savedUntilWeightGrad = worth.savedForWeightGrad / (chunks * worth.pieces);
    stage.savedUntilInputGrad = worth.saved / (chunks * worth.pieces) - stage.savedUntilWeightGrad;
    Costs costs;
    costs.stages.assign(stages, stage);
    costs.link.latency = worth.transfer;
    return costs;
}

} // namespace pipewright
