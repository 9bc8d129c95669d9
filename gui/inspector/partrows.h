// SPDX-License-Identifier: GPL-3.0-or-later
// The parts of an overlapped pair on two rows, computing above communication, from the pair's start to its end. A part
// is chosen by a click or the arrow keys, and moved before or behind parts of the other block by a drag along its row
// or Alt with an arrow key. While it is dragged the rows show what dropping it would give.
#pragma once

#include "core/program/pairtimes.h"

#include <QWidget>

#include <optional>

namespace pipewright {

class PartRows : public QWidget {
    Q_OBJECT

public:
    explicit PartRows(QWidget* parent = nullptr);

    /// The chosen part stays chosen when the same pair is shown again.
    void showPair(const Overlap& pair, PairTimes::Plan plan);

    struct Part {
        std::size_t block = 0, index = 0;
        bool operator==(const Part&) const = default;
    };
    std::optional<Part> chosen() const { return m_chosen; }
    void choose(const Part& part);
    bool isDragging() const { return m_order.has_value(); }
    /// During a drag, the length with the order that a drop would give.
    Nanoseconds length() const { return m_length; }
    /// "dispatch of F0.6: from 4.1 ms, takes 6 ms; its stream lets it wait 0.3 ms".
    QString describe(const Part& part) const;
    QRect rectOf(const Part& part) const; ///< empty when there is no such part

    QSize sizeHint() const override;

Q_SIGNALS:
    void changed(); ///< the chosen part, or the order that a drop would give
    void ordered(const pipewright::PartSequence& order);

protected:
    bool event(QEvent* event) override;
    void paintEvent(QPaintEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void mouseReleaseEvent(QMouseEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;

private:
    void layOut();
    const BlockPart& partOf(const Part& part) const { return m_plan.parts[part.block][part.index]; }
    std::optional<Part> partAt(const QPointF& place) const;
    std::vector<Part> byStart() const;
    /// How many of the other block's parts a part dropped at `x` comes after; only parts on its own stream decide this.
    std::size_t behindAt(const Part& part, double x) const;
    std::optional<std::size_t> neighbour(const Part& part, int direction) const;
    void stopDragging();
    void describeChosen();

    Overlap m_pair;
    PairTimes::Plan m_plan;
    std::optional<Part> m_chosen;
    std::optional<PartSequence> m_order; ///< the order that a drop would give
    PartStarts m_starts, m_plannedStarts;
    Nanoseconds m_length = 0;
    QPointF m_pressedAt;
    bool m_pressed = false;
};

} // namespace pipewright
