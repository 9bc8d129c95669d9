// SPDX-License-Identifier: GPL-3.0-or-later
// The steady state of a building block: each device's passes folded into the T cells of one interval, collisions in
// red, and beside them the memory bound of the device: the sum of ceil(lifespan / T) over its stages, in activations of
// one chunk (arXiv 2405.15362).
#pragma once

#include "core/buildingblock/buildingblockedits.h"
#include "gui/widgets/theme.h"

#include <QWidget>

namespace pipewright {

class BuildingBlockCells : public QWidget {
    Q_OBJECT

public:
    explicit BuildingBlockCells(QWidget* parent = nullptr);
    void setBlock(const BuildingBlock& block, const QStringList& devices); ///< with the devices' names
    QString boundText(int device) const;                                   ///< "⌈9/6⌉ + ⌈4/6⌉ = 3"
    QSize sizeHint() const override;
    QSize minimumSizeHint() const override { return sizeHint(); }

protected:
    void paintEvent(QPaintEvent* event) override;

private:
    double cellWidth() const;
    int rowHeight() const;

    BuildingBlock m_block;
    QStringList m_devices;
    std::vector<std::vector<int>> m_cells;
    std::vector<int> m_bound;
    std::vector<std::vector<bool>> m_met; ///< per device and cell
};

class TimelinePainter;

/// "F" over "m", as blocks are labelled on the lanes. The block stands for any microbatch m; repetitions after and
/// before it are labelled "m+1" and "m\u22121". Where a device holds several stages, the letter has the stage, "F4".
struct PassLabel {
    QString letter, microbatch;
};
PassLabel labelOfPass(const BuildingBlock& block, const BuildingBlock::Pass& pass, int repetition);
/// A pale pass has dim letters on a faint background.
void paintPass(QPainter& painter, const TimelinePainter& blocks, const Theme& theme, const QRectF& rect,
               const BuildingBlock& block, const BuildingBlock::Pass& pass, int repetition, bool pale = false);

/// The passes of one microbatch in a rectangle of any size: no letters, one colour per operation.
void paintBuildingBlock(QPainter& painter, const QRectF& area, const BuildingBlock& block, const QWidget& widget);

} // namespace pipewright
