// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/timeline/dropplanner.h"

#include <algorithm>

namespace pipewright {
namespace {

constexpr int restMilliseconds = 60;

} // namespace

DropPlanner::DropPlanner(Document& document, QObject* parent) : QObject(parent), m_document(document)
{
    m_worker.setMaxThreadCount(1);
    m_rest.setSingleShot(true);
    m_rest.setInterval(restMilliseconds);
    connect(&m_rest, &QTimer::timeout, this, [this] { m_start(); });
}

DropPlanner::~DropPlanner()
{
    stop();
    m_worker.waitForDone();
}

void DropPlanner::stop()
{
    ++m_generation;
    m_rest.stop();
    m_worker.clear();
}

void DropPlanner::forget()
{
    stop();
    m_preview.reset();
    m_design.reset();
    m_evaluated.clear();
    m_room.reset();
    m_transferRange.reset();
}

OrderPreview* DropPlanner::preview()
{
    if (!m_preview && m_document.prediction())
        m_preview = std::make_unique<OrderPreview>(m_document.design(), *m_document.prediction());
    return m_preview && m_preview->possible() ? m_preview.get() : nullptr;
}

DropPlan DropPlanner::plan(const TimelineLayout& layout, const Block& block, const std::vector<Block>& moving,
                           const DropTarget& target, const DropPlan* previous)
{
    const Design& design = m_document.design();
    const Schedule& schedule = design.schedule;
    DropPlan plan;
    plan.block = block;
    plan.device = target.device;
    if (target.device < 0 || target.device >= schedule.devices()
        || layout.lanes().size() <= static_cast<std::size_t>(target.device)) {
        stop();
        plan.title = tr("drop on a lane");
        return plan;
    }
    const Position place = placeOf(schedule, layout, block);
    const int home = place.device >= 0 ? place.device : deviceOfBlock(schedule, layout, block);

    if (place.device >= 0 && home != target.device) {
        plan.kind = DropPlan::Kind::MoveStage;
        if (previous && previous->isSamePlace(plan))
            return *previous;
        std::int64_t count = 0;
        for (const Block& other : schedule.order[home])
            count += other.stage == block.stage && other.replica == block.replica;
        plan.title =
            tr("moves stage %1 (%2 blocks) to %3").arg(block.stage).arg(count).arg(deviceLabel(design, target.device));
        later(plan, [block, device = target.device](const Design& from, const Prediction* present) {
            return Document::withStageMoved(from, present, block.stage, device, block.replica);
        });
        plan.pending = plan.legal = plan.changes = true;
        if (!isLarge()) {
            plan.edit = m_document.tryMoveStage(block.stage, target.device, block.replica);
            finishExactly(design, m_document.prediction(), plan);
        }
        return plan;
    }
    plan.index = insertionIndex(design, layout, target.device, target.time);
    if (place.device < 0) {
        plan.kind = DropPlan::Kind::Place;
        if (home != target.device) {
            stop();
            plan.title = tr("stage %1 is on %2").arg(block.stage).arg(deviceLabel(design, home));
            plan.detail = tr("drop %1 on the lane of %2").arg(blockText(block), deviceLabel(design, home));
            plan.edit.diagnostics.push_back(
                {Severity::Error, toString(block), plan.title.toStdString(), plan.detail.toStdString()});
            return plan;
        }
        if (previous && previous->isSamePlace(plan))
            return *previous;
        plan.title = nameOfPlace(design, plan.device, plan.index, block);
        later(plan, [block, index = plan.index](const Design& from, const Prediction*) {
            return Document::withBlockPlaced(from, block, index);
        });
        plan.pending = plan.legal = plan.changes = true;
        if (!isLarge()) {
            plan.edit = m_document.tryPlaceBlock(block, plan.index);
            if (hasErrors(plan.edit.diagnostics))
                snapPlacing(layout, target, plan);
            plan.title = nameOfPlace(design, plan.device, plan.index, block);
            finishExactly(design, m_document.prediction(), plan);
        }
        return plan;
    }

    plan.kind = DropPlan::Kind::Reorder;
    const std::size_t size = schedule.order[home].size();
    std::vector<std::uint32_t> moved{static_cast<std::uint32_t>(place.index)};
    if (target.exchange) {
        const Position other = placeOf(schedule, layout, *target.exchange);
        plan.positions = presentPositions(size);
        if (other.device == home)
            std::swap(plan.positions[moved[0]], plan.positions[other.index]);
        plan.title = tr("%1 and %2 change places").arg(blockText(block), blockText(*target.exchange));
        plan.text = tr("Exchange %1 and %2 on %3")
                        .arg(blockText(block), blockText(*target.exchange), deviceLabel(design, home));
        decideOrder(plan, previous);
        return plan;
    }
    for (const Block& other : moving)
        if (const Position with = placeOf(schedule, layout, other); with.device == home && !(other == block))
            moved.push_back(static_cast<std::uint32_t>(with.index));
    std::sort(moved.begin(), moved.end());
    const auto stayingBefore = [&moved](int index) {
        return index
               - static_cast<int>(std::lower_bound(moved.begin(), moved.end(), static_cast<std::uint32_t>(index))
                                  - moved.begin());
    };
    const auto aim = [&](int index) {
        plan.index = index;
        const int places = stayingBefore(index) - stayingBefore(place.index);
        plan.positions = shiftedPositions(size, moved, places);
        const QString shift = places > 0 ? tr("%1 later").arg(places) : tr("%1 earlier").arg(-places);
        plan.title = moved.size() == 1 ? nameOfPlace(design, home, index, block)
                                       : tr("%1 blocks %2").arg(moved.size()).arg(places == 0 ? tr("stay") : shift);
    };
    plan.text = moved.size() == 1 ? tr("Move %1 on %2").arg(blockText(block), deviceLabel(design, home))
                                  : tr("Move %1 blocks on %2").arg(moved.size()).arg(deviceLabel(design, home));
    aim(plan.index);
    const auto decide = [&](DropPlan& attempt, const Diagnostics& known = {}) {
        if (target.ripple && moved.size() == 1) {
            attempt.kind = DropPlan::Kind::Ripple;
            attempt.places = stayingBefore(attempt.index) - stayingBefore(place.index);
            attempt.title = tr("%1, the rest of microbatch %2 along").arg(attempt.title).arg(block.microbatch);
            decideRipple(attempt, previous, known);
        } else {
            decideOrder(attempt, previous, known);
        }
    };
    const auto positionAt = [&place](int gap) { return gap > place.index ? gap - 1 : gap; }; // of the one block
    std::optional<OrderPreview::Range> allowed;                                              // of the one block
    if (moved.size() == 1)
        if (OrderPreview* quick = preview()) {
            if (!m_room || !(m_room->block == block))
                m_room = {block, quick->legalRange(home, place.index), {}};
            const OrderPreview::Range& range = *(allowed = m_room->range);
            const std::vector<LaneBlock>& blocks = layout.lanes()[home].blocks();
            const auto last = static_cast<std::size_t>(range.last);
            plan.room = {range.first > 0 ? blocks[range.first - 1].end : 0,
                         last + 1 < blocks.size() ? blocks[last + 1].start : blocks.back().end};
            // The nearest gap where it may stand. Snapping back to its own would hide why the other is illegal.
            const int wanted = positionAt(plan.index);
            const int nearest = std::clamp(wanted, range.first, range.last);
            const int gap = nearest > place.index ? nearest + 1 : nearest;
            if (nearest != wanted && nearest != place.index
                && std::abs(timeOfGap(design, layout, home, gap) - target.time) <= target.snapTime)
                aim(gap);
        }
    DropPlan attempt = plan;
    const int position = positionAt(plan.index);
    if (allowed && isLarge() && (position < allowed->first || position > allowed->last))
        decide(attempt, whyNotBeyond(home, place.index, position > allowed->last));
    else
        decide(attempt);
    if (attempt.legal)
        return attempt;
    // What the range does not tell: the first stage's joined halves, and several blocks at once.
    const int wanted = plan.index, back = wanted < place.index ? 1 : -1;
    for (const int step : {back, 2 * back, -back, -2 * back}) {
        const int index = wanted + step;
        if (index < 0 || index > static_cast<int>(size)
            || std::abs(timeOfGap(design, layout, home, index) - target.time) > target.snapTime)
            continue;
        if (allowed && (positionAt(index) < allowed->first || positionAt(index) > allowed->last))
            continue;
        aim(index);
        if (plan.positions == presentPositions(size))
            continue;
        DropPlan snapped = plan;
        decide(snapped);
        if (snapped.legal)
            return snapped;
    }
    return attempt;
}

void DropPlanner::snapPlacing(const TimelineLayout& layout, const DropTarget& target, DropPlan& plan)
{
    constexpr int reach = 6; // gaps tried to either side
    const Design& design = m_document.design();
    std::vector<std::pair<double, int>> gaps;
    const int last = static_cast<int>(design.schedule.order[plan.device].size());
    for (int index = std::max(0, plan.index - reach); index <= std::min(last, plan.index + reach); ++index) {
        const double distance = std::abs(timeOfGap(design, layout, plan.device, index) - target.time);
        if (index != plan.index && distance <= target.snapTime)
            gaps.emplace_back(distance, index);
    }
    std::sort(gaps.begin(), gaps.end());
    for (const auto& [distance, index] : gaps) {
        Document::Edit edit = m_document.tryPlaceBlock(plan.block, index);
        if (hasErrors(edit.diagnostics))
            continue;
        plan.index = index;
        plan.edit = std::move(edit);
        return;
    }
}

DropPlan DropPlanner::planOrder(const Block& block, int device, std::vector<std::uint32_t> positions,
                                const QString& title, const QString& text, const DropPlan* previous)
{
    DropPlan plan;
    plan.kind = DropPlan::Kind::Reorder;
    plan.block = block;
    plan.device = device;
    plan.positions = std::move(positions);
    plan.title = title;
    plan.text = text;
    decideOrder(plan, previous);
    return plan;
}

DropPlan DropPlanner::planTransfer(const Transfer& transfer, int device, int from, int to, const QString& title)
{
    DropPlan plan;
    plan.kind = DropPlan::Kind::MoveTransfer;
    plan.block = transfer.producer;
    plan.device = device;
    plan.from = from;
    plan.index = to;
    plan.title = title;
    if (!isLarge() || !m_document.prediction()) {
        plan.edit = m_document.tryMoveTransfer(device, from, to);
        finishExactly(m_document.design(), m_document.prediction(), plan);
        return plan;
    }
    const std::pair asked(device, from);
    if (!m_transferRange || m_transferRange->first != asked)
        m_transferRange = {asked, transferRange(m_document.prediction()->program, device, from)};
    const TransferRange range = m_transferRange->second;
    if (to < range.first || to > range.last) {
        stop();
        plan.title = to < range.first ? tr("%1 cannot go that early").arg(blockText(transfer.producer))
                                      : tr("%1 cannot go that late").arg(blockText(transfer.producer));
        plan.detail = to < range.first ? tr("it waits for what comes before, to number %1").arg(range.first)
                                       : tr("what comes behind waits for it, from number %1").arg(range.last + 2);
        plan.edit.diagnostics.push_back(
            {Severity::Error, toString(transfer.producer), plan.title.toStdString(), plan.detail.toStdString()});
        return plan;
    }
    later(plan, [device, from, to](const Design& design, const Prediction* present) {
        return present ? Document::withTransferMoved(design, *present, device, from, to)
                       : Document::Edit{design, {}, {}};
    });
    plan.pending = plan.legal = true;
    plan.changes = to != from;
    return plan;
}

/// What keeps the block at `position` from going one further than it may. The same keeps it from going on, and however
/// far the cursor is away, it is looked for next to the range, and once.
const Diagnostics& DropPlanner::whyNotBeyond(int device, int position, bool later)
{
    std::optional<Diagnostics>& why = m_room->beyond[later ? 1 : 0];
    if (!why) {
        const std::size_t size = m_document.design().schedule.order[device].size();
        const int next = later ? m_room->range.last + 1 : m_room->range.first - 1;
        m_evaluated = shiftedPositions(size, {static_cast<std::uint32_t>(position)}, next - position);
        (void)preview()->evaluate(device, m_evaluated, &why.emplace());
    }
    return *why;
}

void DropPlanner::decideOrder(DropPlan& plan, const DropPlan* previous, const Diagnostics& known)
{
    // The preview's one result may be of another attempt by now.
    if (previous && previous->isSamePlace(plan) && (!previous->live || m_evaluated == plan.positions)) {
        plan = *previous;
        return;
    }
    const Design& design = m_document.design();
    if (plan.positions == presentPositions(plan.positions.size())) {
        stop();
        plan.legal = true;
        plan.detail = tr("no change");
        plan.edit.design = design;
        return;
    }
    if (!isLarge()) {
        plan.edit = m_document.tryReorder(plan.device, plan.positions, plan.text);
        finishExactly(design, m_document.prediction(), plan);
        return;
    }
    const auto reordered = [device = plan.device, positions = plan.positions, text = plan.text](const Design& from,
                                                                                                const Prediction*) {
        return Document::reordered(from, device, positions, text);
    };
    OrderPreview* quick = preview();
    if (!quick) {
        later(plan, reordered);
        plan.pending = plan.legal = plan.changes = true;
        return;
    }
    const Prediction* prediction = nullptr;
    if (known.empty()) {
        m_evaluated = plan.positions;
        prediction = quick->evaluate(plan.device, plan.positions, &plan.edit.diagnostics);
    } else {
        plan.edit.diagnostics = known;
    }
    plan.live = true;
    plan.legal = plan.changes = prediction != nullptr;
    if (!prediction) {
        stop();
        plan.prediction.reset();
        plan.title = explain(plan.edit.diagnostics, &plan.detail);
        return;
    }
    plan.prediction = std::shared_ptr<const Prediction>(std::shared_ptr<void>(), prediction); // the preview's own
    plan.changedFrom = quick->firstChanged();
    plan.detail = describeChange(design, *m_document.prediction(), *prediction);
    later(plan, reordered);
}

void DropPlanner::decideRipple(DropPlan& plan, const DropPlan* previous, const Diagnostics& known)
{
    if (previous && previous->isSamePlace(plan)) {
        plan = *previous;
        return;
    }
    const auto edit = [block = plan.block, places = plan.places](const Design& from, const Prediction*) {
        return Document::rippled(from, block, places);
    };
    if (!isLarge() || plan.places == 0) {
        stop();
        plan.edit = edit(m_document.design(), nullptr);
        plan.text = plan.edit.text;
        finishExactly(m_document.design(), m_document.prediction(), plan);
        return;
    }
    // The block itself goes the whole way or nothing does, and that is known at once; how far the others can follow
    // takes compiling again and again.
    DropPlan alone = plan;
    alone.kind = DropPlan::Kind::Reorder;
    decideOrder(alone, nullptr, known);
    if (!alone.legal) {
        plan.title = alone.title;
        plan.detail = alone.detail;
        plan.edit.diagnostics = alone.edit.diagnostics;
        return;
    }
    later(plan, edit);
    plan.pending = plan.legal = plan.changes = true;
}

void DropPlanner::later(DropPlan plan, std::function<Document::Edit(const Design&, const Prediction*)> edit)
{
    stop();
    if (!isLarge())
        return;
    plan.prediction.reset(); // it belongs to this thread
    m_start = [this, plan = std::move(plan), edit = std::move(edit), generation = m_generation] {
        if (!m_design)
            m_design = std::make_shared<const Design>(m_document.design());
        m_worker.start(
            [this, plan, edit, generation, design = m_design, present = m_document.sharedPrediction()]() mutable {
                plan.edit = edit(*design, present.get());
                finishExactly(*design, present.get(), plan);
                QMetaObject::invokeMethod(
                    this,
                    [this, plan, generation] {
                        if (generation == m_generation)
                            Q_EMIT refined(plan);
                    },
                    Qt::QueuedConnection);
            });
    };
    m_rest.start();
}

Document::Edit DropPlanner::editOf(const DropPlan& plan) const
{
    if (!plan.live && !plan.pending)
        return plan.edit;
    switch (plan.kind) {
    case DropPlan::Kind::Reorder: return m_document.tryReorder(plan.device, plan.positions, plan.text);
    case DropPlan::Kind::Ripple: return m_document.tryRipple(plan.block, plan.places);
    case DropPlan::Kind::MoveStage: return m_document.tryMoveStage(plan.block.stage, plan.device, plan.block.replica);
    case DropPlan::Kind::Place: return m_document.tryPlaceBlock(plan.block, plan.index);
    case DropPlan::Kind::MoveTransfer: return m_document.tryMoveTransfer(plan.device, plan.from, plan.index);
    case DropPlan::Kind::Nothing: break;
    }
    return {};
}

} // namespace pipewright
