// SPDX-License-Identifier: GPL-3.0-or-later
// The legend of the lanes, as a thin strip above them: the design's operations, transfers, idle time, and with an
// overlay the outline of the prediction and the foot of a late block. Causes of idle time are shown when they fit,
// otherwise in the tooltip. One click hides the legend.
#pragma once

#include "core/schedule/block.h"

#include <QColor>
#include <QWidget>

#include <array>
#include <vector>

class QToolButton;

namespace pipewright {

class TimelineView;
struct Design;
struct Prediction;

class Legend : public QWidget {
    Q_OBJECT

public:
    /// The causes, and their colours, are those of `timeline`, which outlives it.
    explicit Legend(const TimelineView& timeline, QWidget* parent = nullptr);
    /// `prediction`: may be null. It has the updates at the end of a step, which are not in the schedule's order.
    void showDesign(const Design& design, const Prediction* prediction, bool overlaid);
    QStringList texts() const; ///< of the entries that are shown now, from the left
    QSize sizeHint() const override;
    QSize minimumSizeHint() const override { return {0, sizeHint().height()}; }

Q_SIGNALS:
    void closed();

protected:
    bool event(QEvent* event) override;
    void paintEvent(QPaintEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;

private:
    enum class Sign { Operation, Transfer, Sum, Idle, Cause, Predicted, Late };
    struct Entry {
        Sign sign;
        QString text, tip;
        Op op = Op::F;                             ///< of an operation
        QColor color = {};                         ///< of a cause
        QString brief = {};                        ///< text for a narrow strip; empty: `text`
        QRect place = {};                          ///< of sign and text; null: no room
        Qt::BrushStyle texture = Qt::SolidPattern; ///< of a cause
    };
    void addGradientSums(const Prediction& prediction);
    void addCauses();
    void arrange();
    bool place(bool briefly, int rows); ///< whether all but the causes have a place
    void paintSign(QPainter& painter, const Entry& entry) const;

    const TimelineView& m_timeline;
    std::vector<Entry> m_entries;
    bool m_briefly = false;
    QToolButton* m_close;
};

} // namespace pipewright
