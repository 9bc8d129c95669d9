// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/timeline/timelinetext.h"

#include "core/base/beyondprediction.h"
#include "core/schedule/replicas.h"
#include "gui/widgets/timetext.h"
#include "gui/widgets/words.h"

#include <QCoreApplication>
#include <QLocale>
#include <QStringList>

#include <algorithm>
#include <cmath>
#include <set>

namespace pipewright {
namespace {

QString tr(const char* text)
{
    return QCoreApplication::translate("TimelineView", text);
}

std::vector<int> stagesOf(const Schedule& schedule, int device, int replica)
{
    std::vector<int> stages;
    for (std::size_t stage = 0; stage < schedule.placement(replica).size(); ++stage)
        if (schedule.placement(replica)[stage] == device)
            stages.push_back(static_cast<int>(stage));
    return stages;
}

// Of all replicas, sorted; a stage that the device holds for two of them once.
std::vector<int> stagesOf(const Schedule& schedule, int device)
{
    std::set<int> stages;
    for (int replica = 0; replica < schedule.replicas(); ++replica)
        for (const int stage : stagesOf(schedule, device, replica))
            stages.insert(stage);
    return {stages.begin(), stages.end()};
}

// "0–3, 7" from sorted numbers.
QString ranges(const std::vector<int>& numbers)
{
    QStringList parts;
    for (std::size_t i = 0; i < numbers.size();) {
        std::size_t last = i;
        while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1)
            ++last;
        parts << (last == i ? QString::number(numbers[i]) : QStringLiteral("%1–%2").arg(numbers[i]).arg(numbers[last]));
        i = last + 1;
    }
    return parts.join(QStringLiteral(", "));
}

// The transformer layers of these stages, counted from 0; embedding and head are told by `ends`.
std::vector<int> layersOfStages(const Design& design, const std::vector<int>& stages, QStringList* ends)
{
    std::vector<int> layers;
    if (!design.workload || design.layersPerStage.size() != design.schedule.deviceOfStage.size())
        return layers;
    std::vector<int> stageOfLayer;
    for (std::size_t stage = 0; stage < design.layersPerStage.size(); ++stage)
        stageOfLayer.insert(stageOfLayer.end(), static_cast<std::size_t>(std::max(0, design.layersPerStage[stage])),
                            static_cast<int>(stage));
    int number = 0;
    const std::vector<Layer>& all = design.workload->layers;
    for (std::size_t i = 0; i < std::min(all.size(), stageOfLayer.size()); ++i) {
        const bool here = std::find(stages.begin(), stages.end(), stageOfLayer[i]) != stages.end();
        if (isBlock(all[i].kind)) {
            if (here)
                layers.push_back(number);
            ++number;
        } else if (here && ends) {
            *ends << QString::fromStdString(all[i].name);
        }
    }
    return layers;
}

QString stagesText(const std::vector<int>& stages)
{
    if (stages.empty())
        return tr("no stage");
    return (stages.size() == 1 ? tr("stage %1") : tr("stages %1")).arg(ranges(stages));
}

// What the device holds of each replica, as blocks are named: "stages 0 · 3/1".
QString stagesByReplica(const Schedule& schedule, int device)
{
    QStringList parts;
    for (int replica = 0; replica < schedule.replicas(); ++replica)
        if (const std::vector<int> stages = stagesOf(schedule, device, replica); !stages.empty())
            parts << (replica == 0 ? ranges(stages) : QStringLiteral("%1/%2").arg(ranges(stages)).arg(replica));
    return parts.isEmpty() ? tr("no stage") : tr("stages %1").arg(parts.join(QStringLiteral(" · ")));
}

/// Start and end of a block are written apart at this many nanoseconds.
double resolutionOf(const LaneBlock& block)
{
    return static_cast<double>(block.runsUntil() - block.runsFrom()) / 100;
}

} // namespace

std::vector<LaneHeader> laneHeaders(const Design& design, const Prediction* prediction, const Comparison* recording,
                                    Side side, const QString& pending)
{
    const int devices = design.schedule.devices();
    std::vector<LaneHeader> headers(devices);
    const bool ofRecording = recording && side != Side::Predicted;
    const bool isPending = prediction && isMemoryPending(design, *prediction);
    const auto recordedPeak = [&](std::size_t index) -> std::optional<Bytes> {
        return ofRecording && index < recording->devices.size() ? recording->devices[index].measuredPeak : std::nullopt;
    };
    Bytes largestPeak = 0;
    double largestActivations = 0;
    if (prediction) {
        for (std::size_t device = 0; device < prediction->metrics.devices.size(); ++device) {
            const DeviceMetrics& metrics = prediction->metrics.devices[device];
            largestPeak = std::max({largestPeak, isPending ? 0 : metrics.peakBytes, recordedPeak(device).value_or(0)});
            largestActivations = std::max(largestActivations, metrics.peakActivations);
        }
    }
    for (int device = 0; device < devices; ++device) {
        LaneHeader& header = headers[device];
        header.name = deviceLabel(design, device);
        const std::vector<int> stages = stagesOf(design.schedule, device);
        const std::vector<int> layers = layersOfStages(design, stages, nullptr);
        header.detail = design.schedule.replicas() > 1 ? stagesByReplica(design.schedule, device)
                        : layers.empty()               ? stagesText(stages)
                                                       : tr("layers %1").arg(ranges(layers));
        if (!prediction || device >= std::ssize(prediction->metrics.devices))
            continue;
        const DeviceMetrics& metrics = prediction->metrics.devices[device];
        if (ofRecording && !recordedPeak(device)) {
            header.memory = tr("not recorded");
            continue;
        }
        if (isPending && !ofRecording) {
            header.memory = pending;
            continue;
        }
        const Bytes peak = recordedPeak(device).value_or(metrics.peakBytes);
        const Bytes limit = device < std::ssize(design.cluster.devices) ? design.cluster.devices[device].memory : 0;
        if (limit > 0 && largestPeak > 0) {
            header.fill = static_cast<double>(peak) / static_cast<double>(limit);
            header.over = peak > limit;
            header.memory = ofWhole(peak, limit, QStringLiteral("%1 / %2"));
        } else if (largestPeak > 0) {
            header.fill = static_cast<double>(peak) / static_cast<double>(largestPeak);
            header.memory = tr("peak %1").arg(sizeText(peak));
        } else if (largestActivations > 0) {
            header.fill = metrics.peakActivations / largestActivations;
            header.memory = tr("peak %1\u00a0×").arg(QLocale::c().toString(metrics.peakActivations, 'f', 1));
        }
        if (ofRecording && side == Side::Both)
            header.memory = isPending ? pairText(pending, sizeText(peak))
                                      : pairOfSizes(recording->devices[device].predictedPeak, peak);
    }
    return headers;
}

QString laneDescription(const Design& design, int device)
{
    const std::vector<int> stages = stagesOf(design.schedule, device);
    QStringList ends;
    const std::vector<int> layers = layersOfStages(design, stages, &ends);
    QStringList parts{deviceLabel(design, device)};
    if (device >= 0 && device < std::ssize(design.cluster.devices) && !design.cluster.devices[device].name.empty())
        parts << QString::fromStdString(design.cluster.devices[device].name);
    if (device >= 0 && device < std::ssize(design.cluster.gpus)) {
        const GpuShare& share = design.cluster.gpus[device];
        parts
            << (share.multiprocessors > 0
                    ? tr("runs on %1 multiprocessors of the machine's GPU %2").arg(share.multiprocessors).arg(share.gpu)
                    : tr("runs on the machine's GPU %1").arg(share.gpu));
    }
    if (design.schedule.replicas() == 1) {
        parts << stagesText(stages);
    } else {
        for (int replica = 0; replica < design.schedule.replicas(); ++replica)
            if (const std::vector<int> held = stagesOf(design.schedule, device, replica); !held.empty())
                parts << tr("%1 of replica %2").arg(stagesText(held)).arg(replica);
    }
    if (!layers.empty())
        parts << tr("layers %1").arg(ranges(layers));
    parts << ends;
    return parts.join(QStringLiteral(", "));
}

QString blockName(const Design& design, const LaneBlock& block, int device, const LaneBlock* measured, Side side)
{
    const QString operation = QString::fromUtf8(describe(block.block.op));
    const double resolution = resolutionOf(block);
    QString times = tr("%1 to %2").arg(timeText(block.runsFrom(), resolution), timeText(block.runsUntil(), resolution));
    if (measured) {
        const auto sided = [&](Nanoseconds predicted, Nanoseconds recorded) {
            return sidedText(side, timeText(predicted, resolution), timeText(recorded, resolution));
        };
        times = tr("%1 %2 to %3")
                    .arg(sideName(side), sided(block.runsFrom(), measured->runsFrom()),
                         sided(block.runsUntil(), measured->runsUntil()));
    }
    if (block.pair != LaneBlock::Pair::None)
        times = tr("%1 together with the block %2 it")
                    .arg(times, block.pair == LaneBlock::Pair::First ? tr("behind") : tr("before"));
    if (block.block.op == Op::U)
        return tr("U%1, %2, on %3, %4").arg(block.block.stage).arg(operation, deviceLabel(design, device), times);
    return tr("%1, %2 of microbatch %3, stage %4 on %5, %6")
        .arg(blockText(block.block), operation)
        .arg(block.block.microbatch)
        .arg(block.block.stage)
        .arg(deviceLabel(design, device), times);
}

QString gradientSumText(const Design& design, const Program& program, const LaneSum& sum, Side side)
{
    const Task& task = program.tasks[sum.task];
    const double resolution = static_cast<double>(sum.end - sum.start) / 100;
    const QString what =
        task.kind == TaskKind::ReplicaSum
            ? QCoreApplication::translate("Timeline", "gradients of stage %1 of replicas %2 and %3 are summed")
                  .arg(task.stage)
                  .arg(rootOfPair(program, task.stage, task.device, task.replica))
                  .arg(task.replica)
            : QCoreApplication::translate("Timeline", "gradients of what stages %1 and %2 share are summed")
                  .arg(task.stage)
                  .arg(task.otherStage());
    return QCoreApplication::translate("Timeline", "%1, %2 and %3, %4 %5 to %6")
        .arg(what, deviceLabel(design, task.device), deviceLabel(design, task.otherDevice()), sideName(side),
             timeText(sum.start, resolution), timeText(sum.end, resolution));
}

QString blockToolTip(const Design& design, const BlockFacts& facts)
{
    const Block& block = facts.predicted.block;
    QString html =
        QStringLiteral("<b>%1</b> &nbsp;%2<br>%3<table cellspacing='0' cellpadding='1'>")
            .arg(blockText(block), QString::fromUtf8(describe(block.op)).toHtmlEscaped(),
                 tr("stage %1 on %2").arg(block.stage).arg(deviceLabel(design, facts.device)).toHtmlEscaped());
    const auto row = [&html](const QString& name, const QString& value) {
        html += QStringLiteral("<tr><td>%1 &nbsp;</td><td align='right'>%2</td></tr>")
                    .arg(name.toHtmlEscaped(), value.toHtmlEscaped());
    };
    if (const int pieces = design.schedule.sequencePieces; pieces > 1 && isPass(block.op))
        row(tr("sequence"),
            tr("%1, piece %2 of %3").arg(block.microbatch / pieces).arg(block.microbatch % pieces + 1).arg(pieces));
    if (design.schedule.replicas() > 1)
        row(tr("replica"), tr("%1 of %2").arg(block.replica + 1).arg(design.schedule.replicas()));
    if (facts.predicted.pair != LaneBlock::Pair::None)
        row(tr("overlaps"), facts.predicted.pair == LaneBlock::Pair::First ? tr("with the block behind it")
                                                                           : tr("with the block before it"));
    const Nanoseconds length = facts.predicted.runsUntil() - facts.predicted.runsFrom();
    const LaneBlock* const measured = facts.measured;
    if (measured)
        row(tr("times"), sideName(facts.side));
    const double resolution = resolutionOf(facts.predicted);
    const auto sided = [&](Nanoseconds predicted, Nanoseconds recorded) {
        return sidedText(facts.side, timeText(predicted, resolution),
                         measured ? timeText(recorded, resolution) : QString());
    };
    row(tr("start"), sided(facts.predicted.runsFrom(), measured ? measured->runsFrom() : 0));
    row(tr("end"), sided(facts.predicted.runsUntil(), measured ? measured->runsUntil() : 0));
    row(tr("duration"), sided(length, measured ? measured->runsUntil() - measured->runsFrom() : 0));
    if (measured && facts.side == Side::Both)
        row(tr("difference"),
            signedPercent(beyondPrediction(static_cast<double>(measured->runsUntil() - measured->runsFrom()),
                                           static_cast<double>(length))));
    if (facts.side != Side::Measured)
        row(tr("source"), QString::fromStdString(design.costs.source));
    if (facts.slack && facts.side != Side::Measured)
        row(measured ? tr("slack, predicted") : tr("slack"),
            *facts.slack == 0 ? tr("none, critical") : durationText(*facts.slack));
    if (block.stage >= 0 && block.stage < std::ssize(design.costs.stages)) {
        const StageCosts& costs = design.costs.stages[block.stage];
        std::vector<std::pair<QString, Bytes>> sizes;
        const auto bytes = [&sizes](const QString& name, Bytes value) {
            if (value > 0)
                sizes.emplace_back(name, value);
        };
        const bool last = block.stage + 1 == design.schedule.stages();
        switch (block.op) {
        case Op::F:
            bytes(tr("keeps"), costs.savedUntilInputGrad + costs.savedUntilWeightGrad);
            if (design.schedule.recomputeOf(block.stage).readsInput() && block.stage > 0)
                bytes(tr("leaves its input for recomputing,"), design.costs.stages[block.stage - 1].output);
            bytes(tr("hands on"), last ? 0 : costs.output);
            break;
        case Op::I:
            bytes(tr("frees"), costs.savedUntilInputGrad + costs.recomputedUntilInputGrad);
            bytes(tr("keeps"), costs.savedFromInputGrad);
            break;
        case Op::B:
            bytes(tr("frees"), costs.savedUntilInputGrad + costs.savedUntilWeightGrad + costs.recomputedUntilInputGrad
                                   + costs.recomputedUntilWeightGrad);
            break;
        case Op::W:
            bytes(tr("frees"), costs.savedUntilWeightGrad + costs.savedFromInputGrad + costs.recomputedUntilWeightGrad);
            break;
        case Op::R: bytes(tr("makes again"), costs.recomputedUntilInputGrad + costs.recomputedUntilWeightGrad); break;
        case Op::U: break;
        }
        const bool recomputes =
            (block.op == Op::I || block.op == Op::B) && design.schedule.recomputeOf(block.stage).insideBackward();
        Bytes largest = recomputes ? costs.workspace(block.op) : 0; // gives the unit
        for (const auto& each : sizes)
            largest = std::max(largest, each.second);
        if (recomputes)
            row(tr("recomputes"),
                tr("%1 of its time, in %2")
                    .arg(durationText(costs.recompute), sizeAmong(costs.workspace(block.op), largest)));
        for (const auto& each : sizes)
            row(each.first, sizeAmong(each.second, largest));
    }
    return html + QStringLiteral("</table>");
}

} // namespace pipewright
