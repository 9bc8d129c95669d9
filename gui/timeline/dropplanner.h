// SPDX-License-Identifier: GPL-3.0-or-later
// Makes DropPlans at the rate of mouse moves. A small design is predicted at once. For a large one an OrderPreview
// gives an approximate plan at once, and another thread makes the exact plan when the cursor rests; that thread works
// on the newest position only. A plan that an OrderPreview cannot make (a stage on another device, a block from the
// tray, a ripple, pieces) is pending until that thread has finished. The drag never waits.
#pragma once

#include "core/predict/orderpreview.h"
#include "core/program/transferedits.h"
#include "gui/timeline/dropplan.h"
#include "gui/widgets/latestwork.h"

#include <QObject>
#include <QTimer>

#include <array>
#include <functional>
#include <optional>

namespace pipewright {

class DropPlanner : public QObject {
    Q_OBJECT

public:
    explicit DropPlanner(Document& document, QObject* parent = nullptr);

    /// `moving`: blocks that go with `block` when they stand on its device. `previous` may hand in the last plan;
    /// when it has the same place, it is returned as it is.
    DropPlan plan(const TimelineLayout& layout, const Block& block, const std::vector<Block>& moving,
                  const DropTarget& target, const DropPlan* previous = nullptr);
    /// A plan for a given order instead of a place under the cursor: dragging the edge of a warm-up makes one. `block`
    /// is held.
    DropPlan planOrder(const Block& block, ReorderDevice order, const QString& title,
                       const DropPlan* previous = nullptr);
    /// A plan for a new place of a transfer in its device's list. In a large design only the data dependencies are
    /// checked at once, once per transfer; the rest is computed when the cursor rests, or for the drop.
    DropPlan planTransfer(const Transfer& transfer, const MoveTransfer& move, const QString& title);
    /// The same for a collective of a group's members. In a large design everything is computed when the cursor rests.
    DropPlan planCollective(const MoveCollective& move, const QString& title);
    /// And for a gather of parameters.
    DropPlan planGather(const MoveGather& move, int device, const QString& title);
    /// And for an order that was copied from another device.
    DropPlan planPaste(const PastePattern& paste, const QString& title);
    /// The edit to commit for a plan; computed now if it was not computed before.
    Document::Edit editOf(const DropPlan& plan) const;
    /// Making the edit of this plan takes long; Document::applyLater() does it in the background.
    static bool isSlow(const DropPlan& plan)
    {
        return plan.state == State::Pending
               && (plan.is<RippleBlock>() || plan.is<PastePattern>() || plan.is<MoveCollective>()
                   || plan.is<MoveGather>());
    }
    /// Drops the computation in progress: no further plan is requested.
    void stop();
    /// The design has changed: drops everything prepared for the previous one. Earlier plans must not be used any more.
    void forget();

    /// The longest evaluation that does not slow down a drag; a design that takes longer is large.
    static constexpr double quickMilliseconds = 5;
    /// For tests: every design is treated as large, or none.
    void setLargeFrom(double milliseconds) { m_largeFrom = milliseconds; }

Q_SIGNALS:
    void refined(const DropPlan& plan); ///< the last plan, worked out exactly

private:
    using State = DropPlan::State;
    bool isLarge() const { return m_document.evaluationMilliseconds() >= m_largeFrom; }
    OrderPreview* preview();
    /// What the steps of plan() share: the held block, the blocks that move with it, and where it may stand.
    struct Held {
        const TimelineLayout& layout;
        const DropTarget& target;
        const DropPlan* previous;
        int device = -1;                          ///< where it stands …
        int index = -1;                           ///< … and at which place of the order
        std::vector<std::uint32_t> moved;         ///< ascending positions, its own among them
        std::optional<OrderPreview::Range> range; ///< the positions that a single block may take; none: not known
        int positionAt(int gap) const { return gap > index ? gap - 1 : gap; }
        int placesTo(int gap) const; ///< how many blocks that stay it passes on the way to `gap`
    };
    DropPlan planStage(DropPlan plan, int home, const DropPlan* previous);
    DropPlan planPlacing(DropPlan plan, int home, const TimelineLayout& layout, const DropTarget& target,
                         const DropPlan* previous);
    DropPlan planExchange(DropPlan plan, const Held& held);
    DropPlan planMove(DropPlan plan, Held held);
    void aim(DropPlan& plan, const Held& held, int gap) const;
    void findRoom(DropPlan& plan, Held& held);
    void decideMove(DropPlan& plan, const Held& held, const Diagnostics& known = {});
    std::optional<DropPlan> snapped(DropPlan plan, const Held& held);
    void snapPlacing(const TimelineLayout& layout, const DropTarget& target, DropPlan& plan);
    const Diagnostics& whyNotBeyond(int device, int position, bool later);
    void decideExactly(DropPlan& plan);
    void decideWhenQuick(DropPlan& plan); ///< or when the cursor rests, in a large design
    void decideOrder(DropPlan& plan, const DropPlan* previous, const Diagnostics& known = {});
    void decideRipple(DropPlan& plan, const ReorderDevice& alone, const DropPlan* previous, const Diagnostics& known);
    void later(DropPlan plan);

    Document& m_document;
    double m_largeFrom = quickMilliseconds;
    std::shared_ptr<OrderPreview> m_preview; ///< shared with the plans that show its result
    std::vector<std::uint32_t> m_evaluated;  ///< the order whose result it has
    /// The legal range of a block's positions, and what blocks it at the lower and the upper end. These diagnostics are
    /// computed when first needed, and empty when the cause is not known.
    struct Room {
        Block block;
        OrderPreview::Range range;
        std::array<std::optional<Diagnostics>, 2> beyond;
    };
    std::optional<Room> m_room; ///< of the block last asked about
    std::optional<std::pair<std::pair<int, int>, TransferRange>>
        m_transferRange; ///< by device and place, of the one last asked about
    QTimer m_rest;
    std::function<void()> m_start;
    LatestWork m_work;
};

} // namespace pipewright
