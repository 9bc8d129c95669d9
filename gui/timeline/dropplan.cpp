// SPDX-License-Identifier: GPL-3.0-or-later
// From a time under the cursor to an index in the order: a binary search in the lane's layout, then the order's own
// neighbours. O(log blocks) per question. The exact prediction of a plan is made by the evaluator.
#include "gui/timeline/dropplan.h"

#include "core/predict/peakchange.h"
#include "gui/document/namededits.h"
#include "gui/timeline/timelineview.h"
#include "gui/widgets/words.h"

#include <QLocale>
#include <QRegularExpression>

#include <algorithm>
#include <cmath>

namespace pipewright {
namespace {

const std::vector<Block>& orderOf(const Design& design, int device)
{
    return design.schedule.order[device];
}

} // namespace

bool DropPlan::isSamePlace(const DropPlan& other) const
{
    return block == other.block && device == other.device && index == other.index && request == other.request;
}

int insertionIndex(const Design& design, const TimelineLayout& layout, int device, double time)
{
    const std::vector<Block>& order = orderOf(design, device);
    const std::vector<LaneBlock>& blocks = layout.lanes()[device].blocks();
    const auto isLater = [time](const LaneBlock& block) {
        return (static_cast<double>(block.start) + static_cast<double>(block.end)) / 2 > time;
    };
    const auto it = std::partition_point(blocks.begin(), blocks.end(), [&](const LaneBlock& b) { return !isLater(b); });
    if (it != blocks.end()) {
        // A lane shows the order, except for updates and for blocks that cannot run yet.
        const std::size_t guess = it - blocks.begin();
        if (guess < order.size() && order[guess] == it->block)
            return static_cast<int>(guess);
        const auto found = std::find(order.begin(), order.end(), it->block);
        if (found != order.end())
            return static_cast<int>(found - order.begin());
    }
    return static_cast<int>(order.size());
}

int outsideJoinedPair(const Design& design, const TimelineLayout& layout, const Block& held, int device, int index,
                      double time)
{
    const std::vector<Block>& order = orderOf(design, device);
    if (design.schedule.firstStageMaySplit || index <= 0 || index >= std::ssize(order))
        return index;
    Block half = order[index - 1];
    if (half.op != Op::I || half.stage != 0 || held == half)
        return index;
    half.op = Op::W;
    if (!(order[index] == half) || held == half)
        return index;
    const LaneBlock *first = layout.blockOf(order[index - 1]), *second = layout.blockOf(half);
    if (!first || !second)
        return index;
    return time < (static_cast<double>(first->start) + static_cast<double>(second->end)) / 2 ? index - 1 : index + 1;
}

double timeOfGap(const Design& design, const TimelineLayout& layout, int device, int index)
{
    const std::vector<Block>& order = orderOf(design, device);
    const LaneBlock* before = index > 0 ? layout.blockOf(order[index - 1]) : nullptr;
    const LaneBlock* after = index < std::ssize(order) ? layout.blockOf(order[index]) : nullptr;
    if (before && after)
        return (static_cast<double>(before->end) + static_cast<double>(after->start)) / 2;
    return before ? static_cast<double>(before->end) : after ? static_cast<double>(after->start) : 0;
}

Position placeOf(const Schedule& schedule, const TimelineLayout& layout, const Block& block)
{
    // The lanes of a prediction show the order, and their index is quicker than a search.
    if (const std::optional<TimelineLayout::Place> place = layout.find(block)) {
        if (place->device < std::ssize(schedule.order) && place->index < schedule.order[place->device].size()
            && schedule.order[place->device][place->index] == block)
            return {place->device, static_cast<int>(place->index)};
    }
    return find(schedule, block);
}

int deviceOfBlock(const Schedule& schedule, const TimelineLayout& layout, const Block& block)
{
    const Position position = placeOf(schedule, layout, block);
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

QString nameOfPlace(const Design& design, int device, int index, const Block& block)
{
    const std::vector<Block>& order = orderOf(design, device);
    const auto at = [&order](int i) { return blockText(order[i]); };
    const int last = static_cast<int>(order.size());
    // The block itself is no neighbour of its new place.
    int next = index;
    if (next < last && order[next] == block)
        ++next;
    if (next < last)
        return TimelineView::tr("%1 before %2").arg(blockText(block), at(next));
    int previous = last - 1;
    if (previous >= 0 && order[previous] == block)
        --previous;
    return previous >= 0 ? TimelineView::tr("%1 after %2").arg(blockText(block), at(previous))
                         : TimelineView::tr("%1 first on %2").arg(blockText(block), deviceLabel(design, device));
}

void finishExactly(const Design& design, const Prediction* present, MemberPredictor& members,
                   MemberPredictor::Patience patience, DropPlan& plan)
{
    using State = DropPlan::State;
    const bool refused = hasErrors(plan.edit.diagnostics);
    const std::optional<EditRequest> remedy =
        refused ? remedyFor(*plan.request, plan.edit.design, present) : std::nullopt;
    const bool changes = plan.edit.design.get() != &design && !(*plan.edit.design == design);
    plan.state = refused ? State::Refused : changes ? State::Exact : State::Unchanged;
    if (plan.state == State::Exact) {
        try {
            plan.prediction = std::make_shared<const Prediction>(members.predictPlaced(*plan.edit.design, patience));
            plan.layout = std::make_shared<const TimelineLayout>(plan.prediction->program, plan.prediction->timeline,
                                                                 plan.edit.design->schedule.devices());
        } catch (const Error& error) {
            plan.state = State::Refused;
            plan.edit.diagnostics = error.diagnostics();
        }
    }
    if (plan.state == State::Refused)
        plan.title = explain(plan.edit.diagnostics, &plan.detail);
    if (remedy) // in the words of the button that a refused drop shows
        plan.detail = TimelineView::tr("drop it here to be offered: %1").arg(editName(*remedy, design, present, {}));
    else if (plan.state == State::Unchanged)
        plan.detail = TimelineView::tr("no change");
    else if (plan.state == State::Exact && present)
        plan.detail = describeChange(design, *present, *plan.prediction);
}

QString describeChange(const Design& design, const Prediction& before, const Prediction& after)
{
    const QLocale locale = QLocale::c();
    const auto sign = [](double value) { return value < 0 ? QStringLiteral("−") : QStringLiteral("+"); };
    QString result;
    const bool ofMembers = before.memoryOfMembers && after.memoryOfMembers; // they determine the step time
    const Nanoseconds step = ofMembers ? before.membersMakespan : before.metrics.makespan;
    const Nanoseconds change = (ofMembers ? after.membersMakespan : after.metrics.makespan) - step;
    if (change == 0) {
        result = TimelineView::tr("step unchanged");
    } else if (step > 0) {
        const double percent = 100.0 * static_cast<double>(change) / static_cast<double>(step);
        result = TimelineView::tr("step %1%2\u00a0%").arg(sign(percent), locale.toString(std::abs(percent), 'f', 1));
    }
    if (isMemoryPending(design, before) || isMemoryPending(design, after))
        return result + TimelineView::tr(", memory after the drop");
    const auto [device, grown] = peakChange(devicePeaks(before.metrics), devicePeaks(after.metrics));
    if (device < 0)
        return result + TimelineView::tr(", memory unchanged");
    const Bytes limit = device < std::ssize(design.cluster.devices) ? design.cluster.devices[device].memory : 0;
    const bool over = limit > 0 && after.metrics.devices[device].peakBytes > limit;
    const Bytes grownBy = std::abs(grown);
    result += TimelineView::tr(", peak %1%2 on %3")
                  .arg(sign(static_cast<double>(grown)), over ? sizeBeside(grownBy, limit) : sizeText(grownBy),
                       deviceLabel(design, device));
    if (over)
        result += TimelineView::tr(", over its %1").arg(sizeBeside(limit, grownBy));
    return result;
}

QString explain(const Diagnostics& diagnostics, QString* hint)
{
    static const QRegularExpression place(QStringLiteral("^device \\d+, position \\d+ \\((.+)\\)$"));
    const auto error = std::find_if(diagnostics.begin(), diagnostics.end(),
                                    [](const Diagnostic& each) { return each.severity == Severity::Error; });
    if (error == diagnostics.end())
        return {};
    if (hint)
        *hint = proseText(QString::fromStdString(error->hint));
    // The lane shows where the block is, so of its place only its name is said: "I0.1 needs F0.1, …".
    const QString what = proseText(QString::fromStdString(error->what));
    const QString block = place.match(QString::fromStdString(error->where)).captured(1);
    if (block.isEmpty())
        return what;
    static const QRegularExpression needs(QStringLiteral("^it needs ([^,]+),"));
    if (const QString input = needs.match(what).captured(1); hint && !input.isEmpty())
        *hint = TimelineView::tr("the latest place of %1 is before %2").arg(input, block);
    const QString it = QStringLiteral("it ");
    return what.startsWith(it) ? block + QLatin1Char(' ') + what.mid(it.size())
                               : TimelineView::tr("%1: %2").arg(block, what);
}

} // namespace pipewright
