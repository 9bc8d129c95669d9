// SPDX-License-Identifier: GPL-3.0-or-later
// What the lanes' signs mean, as a slim strip above them: the operations that the design has, transfers, idle time, and
// under an overlay the outline of the prediction and the foot of a late block. Causes of idle time stand in it where
// there is room, and else in its tooltip. One click hides it.
#pragma once

#include "core/schedule/block.h"

#include <QColor>
#include <QWidget>

#include <array>
#include <vector>

class QToolButton;

namespace pipewright {

class BubblePanel;
struct Design;
struct Prediction;

class Legend : public QWidget {
    Q_OBJECT

public:
    /// The causes, and their colours, are those of `bubbles`, which outlives it.
    explicit Legend(const BubblePanel& bubbles, QWidget* parent = nullptr);
    /// `prediction`: null where there is none; updates at the end of a step are in no order, but in it.
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
    void changeEvent(QEvent* event) override;

private:
    enum class Sign { Operation, Transfer, Sum, Idle, Cause, Predicted, Late };
    struct Entry {
        Sign sign;
        QString text, tip;
        Op op = Op::F;      ///< of an operation
        QColor color = {};  ///< of a cause
        QString brief = {}; ///< where there is little room; empty: as ever
        QRect place = {};   ///< sign and text; null: there is no room
    };
    void addGradientSums(const Prediction& prediction);
    void addCauses();
    void arrange();
    bool place(bool briefly, int rows); ///< whether all but the causes have a place
    void paintSign(QPainter& painter, const Entry& entry) const;

    const BubblePanel& m_bubbles;
    std::vector<Entry> m_entries;
    bool m_briefly = false;
    QToolButton* m_close;
};

} // namespace pipewright
