// SPDX-License-Identifier: GPL-3.0-or-later
// Makes DropPlans as fast as the mouse moves. A small design is predicted outright. A large one is answered at
// once by an OrderPreview, and when the cursor rests a moment, exactly: on another thread, the newest question
// only. What an OrderPreview cannot answer (a stage on another device, a block from the tray, a ripple, pieces) is
// pending until that thread has it; the hand is never held up.
#pragma once

#include "core/predict/orderpreview.h"
#include "core/program/transferorder.h"
#include "gui/timeline/dropplan.h"

#include <QObject>
#include <QThreadPool>
#include <QTimer>

#include <array>
#include <functional>
#include <optional>

namespace pipewright {

class DropPlanner : public QObject {
    Q_OBJECT

public:
    explicit DropPlanner(Document& document, QObject* parent = nullptr);
    ~DropPlanner() override;

    /// `moving`: blocks that go with `block` when they stand on its device. `previous` may hand in the last plan;
    /// when it has the same place, it is returned as it is.
    DropPlan plan(const TimelineLayout& layout, const Block& block, const std::vector<Block>& moving,
                  const DropTarget& target, const DropPlan* previous = nullptr);
    /// A plan for an order that was not pointed at: by key, or by the edge of a warm-up.
    DropPlan planOrder(const Block& block, int device, std::vector<std::uint32_t> positions, const QString& title,
                       const QString& text, const DropPlan* previous = nullptr);
    /// A plan for a transfer's other place in its device's list. Of a large design only the data is asked whether that
    /// can be, once per transfer; the rest is worked out when the cursor rests, or for the drop.
    DropPlan planTransfer(const Transfer& transfer, int device, int from, int to, const QString& title);
    /// What to commit for a plan; worked out now if it was not before.
    Document::Edit editOf(const DropPlan& plan) const;
    /// A plan that takes long to be made an edit of: Document::commitLater() does.
    static bool isSlow(const DropPlan& plan) { return plan.kind == DropPlan::Kind::Ripple && plan.pending; }
    /// No plan is asked for any more: what is under way is dropped.
    void stop();
    /// The design has changed: whatever was prepared for it goes. No plan made before may be used any more.
    void forget();

    /// An evaluation that a moving cursor need not notice; above it a design is large.
    static constexpr double quickMilliseconds = 5;
    /// For tests: every design is treated as large, or none.
    void setLargeFrom(double milliseconds) { m_largeFrom = milliseconds; }

Q_SIGNALS:
    void refined(const DropPlan& plan); ///< the last plan, worked out exactly

private:
    bool isLarge() const { return m_document.evaluationMilliseconds() >= m_largeFrom; }
    OrderPreview* preview();
    void snapPlacing(const TimelineLayout& layout, const DropTarget& target, DropPlan& plan);
    const Diagnostics& whyNotBeyond(int device, int position, bool later);
    void decideOrder(DropPlan& plan, const DropPlan* previous, const Diagnostics& known = {});
    void decideRipple(DropPlan& plan, const DropPlan* previous, const Diagnostics& known);
    void later(DropPlan plan, std::function<Document::Edit(const Design&, const Prediction*)> edit);

    Document& m_document;
    double m_largeFrom = quickMilliseconds;
    std::unique_ptr<OrderPreview> m_preview;
    std::vector<std::uint32_t> m_evaluated; ///< what its result is of
    std::shared_ptr<const Design> m_design; ///< a copy for the worker, made once
    /// Where a block may stand, and what keeps it from going earlier and later once that was asked: none when it is not
    /// sure.
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
    int m_generation = 0;
    QThreadPool m_worker;
};

} // namespace pipewright
