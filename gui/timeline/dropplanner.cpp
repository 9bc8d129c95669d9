// SPDX-License-Identifier: GPL-3.0-or-later
// How a drop is judged. plan() tells apart the four kinds of drop: a stage to another device, a block from the tray, an
// exchange, and a move along the lane. A move is aimed at the gap under the cursor, or at the nearest one where the
// block may stand; where that is illegal, the two gaps to either side are tried. A small design is then edited and
// predicted, O(blocks). Of a large one an OrderPreview is asked, O(tasks behind the first change), and the exact result
// follows from another thread.
#include "gui/timeline/dropplanner.h"

#include "core/schedule/edits.h"
#include "gui/document/namededits.h"

#include <algorithm>

namespace pipewright {
namespace {

constexpr int restMilliseconds = 60;

} // namespace

DropPlanner::DropPlanner(Document& document, QObject* parent) : QObject(parent), m_document(document)
{
    m_rest.setSingleShot(true);
    m_rest.setInterval(restMilliseconds);
    connect(&m_rest, &QTimer::timeout, this, [this] { m_start(); });
}

void DropPlanner::stop()
{
    m_rest.stop();
    m_work.drop();
}

void DropPlanner::forget()
{
    stop();
    m_preview.reset();
    m_evaluated.clear();
    m_room.reset();
    m_transferRange.reset();
}

OrderPreview* DropPlanner::preview()
{
    if (!m_preview && m_document.prediction())
        m_preview = std::make_shared<OrderPreview>(m_document.design(), *m_document.prediction());
    return m_preview && m_preview->possible() ? m_preview.get() : nullptr;
}

DropPlan DropPlanner::plan(const TimelineLayout& layout, const Block& block, const std::vector<Block>& moving,
                           const DropTarget& target, const DropPlan* previous)
{
    const Schedule& schedule = m_document.design().schedule;
    DropPlan plan;
    plan.block = block;
    plan.device = target.device;
    if (target.device < 0 || target.device >= schedule.devices() || std::ssize(layout.lanes()) <= target.device) {
        stop();
        plan.title = tr("drop on a lane");
        return plan;
    }
    const Position place = placeOf(schedule, layout, block);
    const int home = place.device >= 0 ? place.device : deviceOfBlock(schedule, layout, block);
    if (place.device >= 0 && home != target.device)
        return planStage(std::move(plan), home, previous);
    plan.index =
        outsideJoinedPair(m_document.design(), layout, block, target.device,
                          insertionIndex(m_document.design(), layout, target.device, target.time), target.time);
    if (place.device < 0)
        return planPlacing(std::move(plan), home, layout, target, previous);

    Held held{layout, target, previous, home, place.index, {static_cast<std::uint32_t>(place.index)}, {}};
    if (target.exchange)
        return planExchange(std::move(plan), held);
    for (const Block& other : moving)
        if (const Position with = placeOf(schedule, layout, other); with.device == home && !(other == block))
            held.moved.push_back(static_cast<std::uint32_t>(with.index));
    std::sort(held.moved.begin(), held.moved.end());
    return planMove(std::move(plan), std::move(held));
}

DropPlan DropPlanner::planStage(DropPlan plan, int home, const DropPlan* previous)
{
    const Design& design = m_document.design();
    const Block& block = plan.block;
    plan.request = MoveStage{block.stage, plan.device, block.replica};
    if (previous && previous->isSamePlace(plan))
        return *previous;
    std::int64_t count = 0;
    for (const Block& other : design.schedule.order[home])
        count += other.stage == block.stage && other.replica == block.replica;
    plan.title =
        tr("moves stage %1 (%2 blocks) to %3").arg(block.stage).arg(count).arg(deviceLabel(design, plan.device));
    later(plan);
    plan.state = State::Pending;
    if (!isLarge())
        decideExactly(plan);
    return plan;
}

DropPlan DropPlanner::planPlacing(DropPlan plan, int home, const TimelineLayout& layout, const DropTarget& target,
                                  const DropPlan* previous)
{
    const Design& design = m_document.design();
    const Block& block = plan.block;
    plan.request = PlaceBlock{block, plan.index};
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
    later(plan);
    plan.state = State::Pending;
    if (!isLarge()) {
        plan.edit = m_document.tryEdit(*plan.request);
        if (hasErrors(plan.edit.diagnostics))
            snapPlacing(layout, target, plan);
        plan.title = nameOfPlace(design, plan.device, plan.index, block);
        finishExactly(design, m_document.prediction(), *m_document.memberPredictor(), MemberPredictor::Patience::Quick,
                      plan);
    }
    return plan;
}

DropPlan DropPlanner::planExchange(DropPlan plan, const Held& held)
{
    const Block& exchange = *held.target.exchange;
    const Position other = placeOf(m_document.design().schedule, held.layout, exchange);
    plan.title = tr("%1 and %2 change places").arg(blockText(plan.block), blockText(exchange));
    plan.request = blockExchange(m_document.design(), held.device, held.index,
                                 other.device == held.device ? other.index : held.index);
    decideOrder(plan, held.previous);
    return plan;
}

int DropPlanner::Held::placesTo(int gap) const
{
    const auto stayingBefore = [this](int i) {
        return i
               - static_cast<int>(std::lower_bound(moved.begin(), moved.end(), static_cast<std::uint32_t>(i))
                                  - moved.begin());
    };
    return stayingBefore(gap) - stayingBefore(index);
}

/// Sets the plan's place to the gap before the block at `gap`.
void DropPlanner::aim(DropPlan& plan, const Held& held, int gap) const
{
    const Design& design = m_document.design();
    plan.index = gap;
    const int places = held.placesTo(gap);
    plan.request = blocksMove(design, held.device, held.moved, places);
    const QString shift = places > 0 ? tr("%1 later").arg(places) : tr("%1 earlier").arg(-places);
    plan.title = held.moved.size() == 1
                     ? nameOfPlace(design, held.device, gap, plan.block)
                     : tr("%1 blocks %2").arg(held.moved.size()).arg(places == 0 ? tr("stay") : shift);
}

DropPlan DropPlanner::planMove(DropPlan plan, Held held)
{
    aim(plan, held, plan.index);
    findRoom(plan, held);
    DropPlan attempt = plan;
    const int position = held.positionAt(plan.index);
    if (held.range && isLarge() && (position < held.range->first || position > held.range->last))
        decideMove(attempt, held, whyNotBeyond(held.device, held.index, position > held.range->last));
    else
        decideMove(attempt, held);
    if (attempt.isLegal())
        return attempt;
    if (std::optional<DropPlan> near = snapped(std::move(plan), held))
        return *std::move(near);
    return attempt;
}

/// Finds the legal range of a single block, as far as a preview can tell, and aims at the nearest legal gap within
/// reach.
void DropPlanner::findRoom(DropPlan& plan, Held& held)
{
    OrderPreview* const quick = held.moved.size() == 1 ? preview() : nullptr;
    if (!quick)
        return;
    if (!m_room || !(m_room->block == plan.block))
        m_room = {plan.block, quick->legalRange(held.device, held.index), {}};
    const OrderPreview::Range& range = *(held.range = m_room->range);
    const std::vector<LaneBlock>& blocks = held.layout.lanes()[held.device].blocks();
    plan.room = {range.first > 0 ? blocks[range.first - 1].end : 0,
                 range.last + 1 < std::ssize(blocks) ? blocks[range.last + 1].start : blocks.back().end};
    // Snapping back to the block's own gap would hide why the gap under the cursor is illegal.
    const int wanted = held.positionAt(plan.index);
    const int nearest = std::clamp(wanted, range.first, range.last);
    const int gap = nearest > held.index ? nearest + 1 : nearest;
    if (nearest != wanted && nearest != held.index
        && std::abs(timeOfGap(m_document.design(), held.layout, held.device, gap) - held.target.time)
               <= held.target.snapTime)
        aim(plan, held, gap);
}

/// Decides a move that was aimed at a gap: of the held block with the rest of its microbatch, or of `held.moved`.
void DropPlanner::decideMove(DropPlan& plan, const Held& held, const Diagnostics& known)
{
    if (!held.target.ripple || held.moved.size() != 1) {
        decideOrder(plan, held.previous, known);
        return;
    }
    const ReorderDevice alone = std::get<ReorderDevice>(*std::move(plan.request));
    plan.request = RippleBlock{plan.block, held.placesTo(plan.index)};
    plan.title = tr("%1, the rest of microbatch %2 along").arg(plan.title).arg(plan.block.microbatch);
    decideRipple(plan, alone, held.previous, known);
}

/// The first legal plan among the gaps beside an illegal one. It covers the cases that the range of one block does not:
/// the joined I and W of the first stage, and several blocks at once.
std::optional<DropPlan> DropPlanner::snapped(DropPlan plan, const Held& held)
{
    const Design& design = m_document.design();
    const int size = static_cast<int>(design.schedule.order[held.device].size());
    const int wanted = plan.index, back = wanted < held.index ? 1 : -1;
    for (const int step : {back, 2 * back, -back, -2 * back}) {
        const int gap = wanted + step;
        if (gap < 0 || gap > size
            || std::abs(timeOfGap(design, held.layout, held.device, gap) - held.target.time) > held.target.snapTime)
            continue;
        if (const int position = held.positionAt(gap);
            held.range && (position < held.range->first || position > held.range->last))
            continue;
        aim(plan, held, gap);
        if (held.placesTo(gap) == 0)
            continue;
        DropPlan attempt = plan;
        decideMove(attempt, held);
        if (attempt.isLegal())
            return attempt;
    }
    return std::nullopt;
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
        const PlaceBlock request{plan.block, index};
        Document::Edit edit = m_document.tryEdit(request);
        if (hasErrors(edit.diagnostics))
            continue;
        plan.index = index;
        plan.request = request;
        plan.edit = std::move(edit);
        return;
    }
}

DropPlan DropPlanner::planOrder(const Block& block, ReorderDevice order, const QString& title, const DropPlan* previous)
{
    DropPlan plan;
    plan.block = block;
    plan.device = order.device;
    plan.request = std::move(order);
    plan.title = title;
    decideOrder(plan, previous);
    return plan;
}

DropPlan DropPlanner::planTransfer(const Transfer& transfer, const MoveTransfer& move, const QString& title)
{
    DropPlan plan;
    plan.request = move;
    plan.block = transfer.producer;
    plan.device = move.device;
    plan.index = move.to;
    plan.title = title;
    if (!isLarge() || !m_document.prediction()) {
        decideExactly(plan);
        return plan;
    }
    const std::pair asked(move.device, move.from);
    if (!m_transferRange || m_transferRange->first != asked)
        m_transferRange = {asked, transferRange(m_document.prediction()->program, move.device, move.from)};
    const TransferRange range = m_transferRange->second;
    if (move.to < range.first || move.to > range.last) {
        const bool early = move.to < range.first;
        stop();
        plan.title =
            (early ? tr("%1 cannot go that early") : tr("%1 cannot go that late")).arg(blockText(transfer.producer));
        plan.detail = early ? tr("it waits for what comes before, to number %1").arg(range.first)
                            : tr("what comes behind waits for it, from number %1").arg(range.last + 2);
        plan.edit.diagnostics.push_back(
            {Severity::Error, toString(transfer.producer), plan.title.toStdString(), plan.detail.toStdString()});
        return plan;
    }
    later(plan);
    plan.state = State::Pending;
    return plan;
}

DropPlan DropPlanner::planCollective(const MoveCollective& move, const QString& title)
{
    DropPlan plan;
    plan.request = move;
    plan.block = move.collective.producer;
    plan.title = title;
    decideWhenQuick(plan);
    return plan;
}

DropPlan DropPlanner::planGather(const MoveGather& move, int device, const QString& title)
{
    DropPlan plan;
    plan.request = move;
    plan.block = move.reader;
    plan.device = device;
    plan.title = title;
    decideWhenQuick(plan);
    return plan;
}

DropPlan DropPlanner::planPaste(const PastePattern& paste, const QString& title)
{
    DropPlan plan;
    plan.request = paste;
    plan.device = paste.devices.front();
    plan.title = title;
    decideWhenQuick(plan);
    return plan;
}

void DropPlanner::decideWhenQuick(DropPlan& plan)
{
    if (!isLarge() || !m_document.prediction()) {
        decideExactly(plan);
        return;
    }
    later(plan);
    plan.state = State::Pending;
}

/// Why the block at `position` cannot go one place beyond its legal range. The same cause blocks all places further
/// away, so it is determined once, at the end of the range.
const Diagnostics& DropPlanner::whyNotBeyond(int device, int position, bool later)
{
    std::optional<Diagnostics>& why = m_room->beyond[later ? 1 : 0];
    if (!why) {
        const std::size_t size = m_document.design().schedule.order[device].size();
        const int next = later ? m_room->range.last + 1 : m_room->range.first - 1;
        const std::uint32_t moved[] = {static_cast<std::uint32_t>(position)};
        m_evaluated = shiftedPositions(size, moved, next - position);
        (void)preview()->evaluate(device, m_evaluated, &why.emplace());
    }
    return *why;
}

/// Applies the plan's request and predicts the result.
void DropPlanner::decideExactly(DropPlan& plan)
{
    plan.edit = m_document.tryEdit(*plan.request);
    finishExactly(m_document.design(), m_document.prediction(), *m_document.memberPredictor(),
                  MemberPredictor::Patience::Quick, plan);
}

/// Decides a plan that reorders one device.
void DropPlanner::decideOrder(DropPlan& plan, const DropPlan* previous, const Diagnostics& known)
{
    const std::vector<std::uint32_t>& positions = std::get<ReorderDevice>(*plan.request).positions;
    // The preview keeps one result, which may belong to a later attempt.
    if (previous && previous->isSamePlace(plan)
        && (previous->state != State::Approximate || m_evaluated == positions)) {
        plan = *previous;
        return;
    }
    if (std::is_sorted(positions.begin(), positions.end())) {
        stop();
        plan.state = State::Unchanged;
        plan.detail = tr("no change");
        plan.edit.design = m_document.sharedDesign();
        return;
    }
    if (!isLarge()) {
        decideExactly(plan);
        return;
    }
    OrderPreview* quick = preview();
    if (!quick) {
        later(plan);
        plan.state = State::Pending;
        return;
    }
    const Prediction* prediction = nullptr;
    if (known.empty()) {
        m_evaluated = positions;
        prediction = quick->evaluate(plan.device, positions, &plan.edit.diagnostics);
    } else {
        plan.edit.diagnostics = known;
    }
    if (!prediction) {
        stop();
        plan.title = explain(plan.edit.diagnostics, &plan.detail);
        return;
    }
    plan.state = State::Approximate;
    plan.prediction = {m_preview, prediction}; // points into the preview and keeps it alive
    plan.changedFrom = quick->firstChanged();
    plan.detail = describeChange(m_document.design(), *m_document.prediction(), *prediction);
    later(plan);
}

/// Decides a ripple. `alone`: the order without it, in which only the held block moves.
void DropPlanner::decideRipple(DropPlan& plan, const ReorderDevice& alone, const DropPlan* previous,
                               const Diagnostics& known)
{
    if (previous && previous->isSamePlace(plan)) {
        plan = *previous;
        return;
    }
    if (!isLarge() || std::get<RippleBlock>(*plan.request).places == 0) {
        stop();
        decideExactly(plan);
        return;
    }
    // The held block goes the whole way or nothing moves, and that is known at once. How far the other blocks can
    // follow takes many compilations.
    DropPlan first = plan;
    first.request = alone;
    decideOrder(first, nullptr, known);
    if (!first.isLegal()) {
        plan.title = first.title;
        plan.detail = first.detail;
        plan.edit.diagnostics = first.edit.diagnostics;
        return;
    }
    later(plan);
    plan.state = State::Pending;
}

/// Computes the exact plan on another thread after a short time without a request for another plan.
void DropPlanner::later(DropPlan plan)
{
    stop();
    if (!isLarge())
        return;
    plan.prediction.reset(); // it belongs to this thread
    m_start = [this, plan = std::move(plan)] {
        m_work.start(
            [plan, design = m_document.sharedDesign(), present = m_document.sharedPrediction(),
             members = m_document.memberPredictor()](const auto&) {
                DropPlan exact = plan;
                exact.edit = Document::tryEdit(*plan.request, design, present.get());
                finishExactly(*design, present.get(), *members, MemberPredictor::Patience::Any, exact);
                return exact;
            },
            [this](const DropPlan& exact) { Q_EMIT refined(exact); });
    };
    m_rest.start();
}

Document::Edit DropPlanner::editOf(const DropPlan& plan) const
{
    const bool isAhead = plan.state == State::Pending || plan.state == State::Approximate;
    return isAhead ? m_document.tryEdit(*plan.request) : plan.edit;
}

} // namespace pipewright

#include "moc_dropplanner.cpp"
