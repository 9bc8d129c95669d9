// SPDX-License-Identifier: GPL-3.0-or-later
// A synthesised program as a flow from top to bottom: every computation with what its devices then hold of the
// result, drawn as a bar: split by their shares (pieces), one full line per device (whole everywhere), or one
// hatched line per device (a sum that is still apart). Collectives stand between the computations they connect.
// Paints the visible rows only. By key: arrows, Page Up and Down, Home and End choose a row.
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

    void setProgram(const sharding::ShardingProgram& program, const sharding::TensorGraph& graph,
                    const sharding::Machine& machine, const sharding::Ratios& ratios);
    void clear();
    int rows() const { return static_cast<int>(m_rows.size()); }
    int currentRow() const { return m_current; }
    void setCurrentRow(int row);
    QString rowText(int row) const; ///< all that the row draws, for tooltips and assistive technology

Q_SIGNALS:
    void currentChanged(int row);

protected:
    void paintEvent(QPaintEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
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

    std::vector<Row> m_rows;
    int m_current = -1;
};

} // namespace pipewright
