// SPDX-License-Identifier: GPL-3.0-or-later
// The steady state of a building block: every device's interval folded to its T cells, which pass stands in
// each, red where two meet, and beside it what the device holds at most: the sum of ceil(lifespan / T) over its
// stages, in activations of one chunk.
#pragma once

#include "core/buildingblock/buildingblockedits.h"

#include <QWidget>

namespace pipewright {

class BlockCells : public QWidget {
    Q_OBJECT

public:
    explicit BlockCells(QWidget* parent = nullptr);
    void setBlock(const BuildingBlock& block);
    QString boundText(int device) const; ///< "⌈9/6⌉ + ⌈4/6⌉ = 3"
    QSize sizeHint() const override;
    QSize minimumSizeHint() const override { return sizeHint(); }

protected:
    void paintEvent(QPaintEvent* event) override;

private:
    double cellWidth() const;
    int rowHeight() const;

    BuildingBlock m_block;
    std::vector<std::vector<int>> m_cells;
    std::vector<int> m_bound;
    std::vector<std::vector<bool>> m_met; ///< per device and cell
};

/// The passes of one microbatch in a rectangle, as small as it may be: no letters, one colour per operation.
void paintBuildingBlock(QPainter& painter, const QRectF& area, const BuildingBlock& block, const QWidget& widget);

} // namespace pipewright
