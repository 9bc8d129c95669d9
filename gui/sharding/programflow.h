// SPDX-License-Identifier: GPL-3.0-or-later
// A synthesised program as a flow from top to bottom. Every computation has a bar for the distribution of its result
// over the devices: split by shares (pieces), one full line per device (whole), or one hatched line per device (partial
// sums). Collectives stand between the computations that they connect. Paints visible rows only. Arrows, Page Up and
// Down, Home and End select a row; the mouse, or Alt with the arrows, asks to move it: the owner decides whether it is
// moved.
#pragma once

#include "core/sharding/shardingprogram.h"

#include <QAbstractScrollArea>
#include <QString>

#include <vector>

namespace pipewright {

class ProgramFlow : public QAbstractScrollArea {
    Q_OBJECT

public:
    explicit ProgramFlow(QWidget* parent = nullptr);

    void setProgram(const sharding::ShardingProgram& program, const TensorGraph& graph,
                    const sharding::Machine& machine, const sharding::Ratios& ratios);
    void clear();
    int rows() const { return static_cast<int>(m_rows.size()); }
    int currentRow() const { return m_current; }
    void setCurrentRow(int row);
    QString rowText(int row) const; ///< the row as text, for tooltips and screen readers

Q_SIGNALS:
    void currentChanged(int row);
    void moveWanted(int from, int to); ///< move row `from` to the position of row `to`

protected:
    void paintEvent(QPaintEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void mouseReleaseEvent(QMouseEvent* event) override;
    bool viewportEvent(QEvent* event) override;

private:
    struct Row {
        QString action, relationText, cost;
        sharding::Relation relation;
        std::vector<double> shares; ///< of the devices
        bool computes = false, communicates = false;
    };
    static constexpr int rowHeight = 30;
    void paintRow(QPainter& painter, const Row& row, const QRect& area, bool current) const;
    void paintBar(QPainter& painter, const Row& row, const QRectF& bar) const;
    void layOut();
    int rowAt(int y) const;
    int slotAt(int y) const; ///< the row before which a drop at `y` inserts; rows(): at the end
    void wantMove(int from, int to);
    void endDrag();

    std::vector<Row> m_rows;
    int m_current = -1;
    struct Drag {
        int row = -1, pressedAt = 0;
        int slot = -1; ///< -1: the mouse has not moved yet
    } m_drag;
};

} // namespace pipewright
