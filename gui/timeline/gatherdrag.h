// SPDX-License-Identifier: GPL-3.0-or-later
// Moves a gather of parameters that copies share out among the blocks of its device, in the row below its transfers.
// Left of the last block that reads the same parameters it is left out: the device holds them. By key:
// TimelineEdits::moveTransferBy().
#pragma once

#include "core/base/units.h"
#include "core/schedule/block.h"
#include "gui/timeline/gesture.h"

#include <QPoint>
#include <QString>

#include <vector>

namespace pipewright {

class GatherDrag : public Gesture {
public:
    /// `index`: in the device's list (TransferLanes::of()).
    GatherDrag(TimelineParts& d, int device, std::size_t index, QPoint pressedAt);
    void move(const QMouseEvent& event) override;
    void release(const QMouseEvent& event) override;
    void addTo(OverlayContent& content) const override;
    bool plansBlock() const override { return false; }

private:
    QString titleAt(std::size_t place) const;

    const int m_device;
    const Block m_reader;
    const QPoint m_pressedAt;
    double m_grip = 0; ///< from the chip's left edge to where it was pressed, pixels
    /// The device's blocks in order, and when each may have a gather before it: at the end of the one before.
    std::vector<Block> m_order;
    std::vector<Nanoseconds> m_gaps;
    std::size_t m_readerPlace = 0;
    double m_caret = 0;
    bool m_moving = false;
};

} // namespace pipewright
