// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/timeline/dropplan.h"

#include <QCoreApplication>
#include <QLocale>

#include <algorithm>
#include <cmath>

namespace pipewright {
namespace {

constexpr int snapPlaces = 6;                   // gaps tried to either side
constexpr std::int64_t snapUpToBlocks = 20'000; // each try checks the whole schedule

QString tr(const char* text)
{
    return QCoreApplication::translate("TimelineView", text);
}

QString name(const Block& block)
{
    return QString::fromStdString(toString(block));
}

const std::vector<Block>& orderOf(const Document& document, int device)
{
    return document.design().schedule.order[static_cast<std::size_t>(device)];
}

// Middle of the gap before `index`: what the cursor's distance to a gap is measured by.
double timeOfGap(const Document& document, const TimelineLayout& layout, int device, int index)
{
    const std::vector<Block>& order = orderOf(document, device);
    const LaneBlock* before = index > 0 ? layout.blockOf(order[static_cast<std::size_t>(index) - 1]) : nullptr;
    const LaneBlock* after =
        static_cast<std::size_t>(index) < order.size() ? layout.blockOf(order[static_cast<std::size_t>(index)]) : nullptr;
    if (before && after)
        return (static_cast<double>(before->end) + static_cast<double>(after->start)) / 2;
    return before ? static_cast<double>(before->end) : after ? static_cast<double>(after->start) : 0;
}

QString placeText(const Document& document, const DropPlan& plan)
{
    const std::vector<Block>& order = orderOf(document, plan.device);
    const auto at = [&order](int index) { return name(order[static_cast<std::size_t>(index)]); };
    const int last = static_cast<int>(order.size());
    // The block itself is no neighbour of its new place.
    int next = plan.index;
    if (next < last && order[static_cast<std::size_t>(next)] == plan.block)
        ++next;
    if (next < last)
        return tr("%1 before %2").arg(name(plan.block), at(next));
    int previous = last - 1;
    if (previous >= 0 && order[static_cast<std::size_t>(previous)] == plan.block)
        --previous;
    return previous >= 0 ? tr("%1 after %2").arg(name(plan.block), at(previous))
                         : tr("%1 first on %2").arg(name(plan.block), deviceLabel(document.design(), plan.device));
}

Document::Edit tryAt(const Document& document, const DropPlan& plan, int index)
{
    return plan.kind == DropPlan::Kind::Place ? document.tryPlaceBlock(plan.block, index)
                                              : document.tryMoveBlock(plan.block, index);
}

// Takes the nearest legal gap within reach when the one under the cursor is illegal.
void snap(const Document& document, const TimelineLayout& layout, const DropTarget& target, DropPlan& plan)
{
    if (target.snapTime <= 0 || document.design().schedule.blocks() > snapUpToBlocks)
        return;
    std::vector<std::pair<double, int>> gaps;
    const int last = static_cast<int>(orderOf(document, plan.device).size());
    for (int index = std::max(0, plan.index - snapPlaces); index <= std::min(last, plan.index + snapPlaces); ++index) {
        const double distance = std::abs(timeOfGap(document, layout, plan.device, index) - target.time);
        if (index != plan.index && distance <= target.snapTime)
            gaps.emplace_back(distance, index);
    }
    std::sort(gaps.begin(), gaps.end());
    for (const auto& [distance, index] : gaps) {
        Document::Edit edit = tryAt(document, plan, index);
        // Snapping back to where it stands would hide why the place under the cursor is illegal.
        if (hasErrors(edit.diagnostics) || edit.design == document.design())
            continue;
        plan.index = index;
        plan.edit = std::move(edit);
        return;
    }
}

void finish(const Document& document, DropPlan& plan, const QString& title)
{
    plan.legal = !hasErrors(plan.edit.diagnostics);
    plan.changes = plan.legal && !(plan.edit.design == document.design());
    if (!plan.legal) {
        plan.title = explain(plan.edit.diagnostics, &plan.detail);
        return;
    }
    plan.title = title;
    if (!plan.changes) {
        plan.detail = tr("no change");
        return;
    }
    try {
        plan.prediction = std::make_shared<const Prediction>(predictPlaced(plan.edit.design));
    } catch (const Error& error) {
        plan.legal = plan.changes = false;
        plan.edit.diagnostics = error.diagnostics();
        plan.title = explain(plan.edit.diagnostics, &plan.detail);
        return;
    }
    if (document.prediction())
        plan.detail = describeChange(document.design(), *document.prediction(), *plan.prediction);
}

} // namespace

int insertionIndex(const Document& document, const TimelineLayout& layout, int device, double time)
{
    const std::vector<Block>& order = orderOf(document, device);
    const std::vector<LaneBlock>& blocks = layout.lanes()[static_cast<std::size_t>(device)].blocks();
    const auto isLater = [time](const LaneBlock& block) {
        return (static_cast<double>(block.start) + static_cast<double>(block.end)) / 2 > time;
    };
    const auto it = std::partition_point(blocks.begin(), blocks.end(), [&](const LaneBlock& b) { return !isLater(b); });
    if (it != blocks.end()) {
        // A lane shows the order, except for updates and for blocks that cannot run yet.
        const std::size_t guess = static_cast<std::size_t>(it - blocks.begin());
        if (guess < order.size() && order[guess] == it->block)
            return static_cast<int>(guess);
        const auto found = std::find(order.begin(), order.end(), it->block);
        if (found != order.end())
            return static_cast<int>(found - order.begin());
    }
    return static_cast<int>(order.size());
}

int deviceOfBlock(const Schedule& schedule, const Block& block)
{
    const Position position = find(schedule, block);
    if (position.device >= 0)
        return position.device;
    for (std::size_t device = 0; device < schedule.order.size(); ++device) {
        for (const Block& other : schedule.order[device]) {
            if (other.stage == block.stage && other.replica == block.replica)
                return static_cast<int>(device);
        }
    }
    const bool known = block.stage >= 0 && block.stage < schedule.stages() && block.replica < schedule.replicas();
    return known ? schedule.deviceOf(block) : -1;
}

DropPlan planDrop(const Document& document, const TimelineLayout& layout, const Block& block, const DropTarget& target,
                  const DropPlan* previous)
{
    const Schedule& schedule = document.design().schedule;
    DropPlan plan;
    plan.block = block;
    plan.device = target.device;
    if (target.device < 0 || target.device >= schedule.devices() || layout.lanes().size() <= static_cast<std::size_t>(target.device)) {
        plan.title = tr("drop on a lane");
        return plan;
    }
    const bool placed = find(schedule, block).device >= 0;
    const int home = deviceOfBlock(schedule, block);

    if (placed && home != target.device) {
        plan.kind = DropPlan::Kind::MoveStage;
        if (previous && previous->kind == plan.kind && previous->block == block && previous->device == plan.device)
            return *previous;
        std::int64_t count = 0;
        for (const Block& other : schedule.order[static_cast<std::size_t>(home)])
            count += other.stage == block.stage;
        plan.edit = document.tryMoveStage(block.stage, target.device, block.replica);
        finish(document, plan,
               tr("moves stage %1 (%2 blocks) to %3")
                   .arg(block.stage)
                   .arg(count)
                   .arg(deviceLabel(document.design(), target.device)));
        return plan;
    }

    plan.kind = placed ? DropPlan::Kind::Reorder : DropPlan::Kind::Place;
    if (home != target.device) {
        plan.title = tr("stage %1 is on %2").arg(block.stage).arg(deviceLabel(document.design(), home));
        plan.detail = tr("drop %1 on the lane of %2").arg(name(block), deviceLabel(document.design(), home));
        plan.edit.diagnostics.push_back({Severity::Error, toString(block), plan.title.toStdString(), plan.detail.toStdString()});
        return plan;
    }
    const int wanted = insertionIndex(document, layout, target.device, target.time);
    plan.index = wanted;
    plan.edit = tryAt(document, plan, wanted);
    if (hasErrors(plan.edit.diagnostics))
        snap(document, layout, target, plan);
    if (previous && previous->kind == plan.kind && previous->block == block && previous->device == plan.device &&
        previous->index == plan.index && previous->edit == plan.edit)
        return *previous;
    finish(document, plan, placeText(document, plan));
    return plan;
}

QString describeChange(const Design& design, const Prediction& before, const Prediction& after)
{
    const QLocale locale = QLocale::c();
    const auto sign = [](double value) { return value < 0 ? QStringLiteral("−") : QStringLiteral("+"); };
    QString result;
    if (before.metrics.makespan == after.metrics.makespan) {
        result = tr("step unchanged");
    } else if (before.metrics.makespan > 0) {
        const double percent = 100.0 * static_cast<double>(after.metrics.makespan - before.metrics.makespan) /
                               static_cast<double>(before.metrics.makespan);
        result = tr("step %1%2 %").arg(sign(percent), locale.toString(std::abs(percent), 'f', 1));
    }
    // The largest increase is what can hurt; only without one is the largest relief worth the words.
    int device = -1;
    Bytes change = 0;
    const std::size_t devices = std::min(before.metrics.devices.size(), after.metrics.devices.size());
    for (std::size_t i = 0; i < devices; ++i) {
        const Bytes difference = after.metrics.devices[i].peakBytes - before.metrics.devices[i].peakBytes;
        if (change <= 0 ? difference > 0 || difference < change : difference > change) {
            change = difference;
            device = static_cast<int>(i);
        }
    }
    if (device < 0)
        return result + tr(", memory unchanged");
    result += tr(", peak %1%2 on %3")
                  .arg(sign(static_cast<double>(change)), QString::fromStdString(formatSize(std::abs(change))),
                       deviceLabel(design, device));
    const auto index = static_cast<std::size_t>(device);
    const Bytes limit = index < design.cluster.devices.size() ? design.cluster.devices[index].memory : 0;
    if (limit > 0 && after.metrics.devices[index].peakBytes > limit)
        result += tr(", over its %1").arg(QString::fromStdString(formatSize(limit)));
    return result;
}

QString explain(const Diagnostics& diagnostics, QString* hint)
{
    for (const Diagnostic& diagnostic : diagnostics) {
        if (diagnostic.severity != Severity::Error)
            continue;
        if (hint)
            *hint = QString::fromStdString(diagnostic.hint);
        return QString::fromStdString(diagnostic.what);
    }
    return {};
}

} // namespace pipewright
