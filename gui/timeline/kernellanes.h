// SPDX-License-Identifier: GPL-3.0-or-later
// The sub-lanes of kernels: below a device's measured blocks what its GPU ran for them, where CUPTI or PyTorch's
// profiler recorded, and of PyTorch's ranks on CPUs their operators. Those that are wide enough carry their name, those
// that share a pixel are one rectangle, and a red foot says how long a gap lasted because the host had not launched
// what comes next.
#pragma once

#include "gui/document/document.h"
#include "gui/widgets/theme.h"
#include "gui/widgets/timecoordinates.h"

#include <QRectF>

#include <vector>

class QPainter;

namespace pipewright {

class KernelLanes {
public:
    explicit KernelLanes(const Document& document) : m_document(document) {}
    const Document::Overlay::Kernels* kernels() const; ///< null: none were recorded

    struct Rect {
        QRectF rect;
        TaskId task = none;
        std::size_t index = 0; ///< into the block's kernels: the first of those that share the pixel
        std::size_t count = 1;
    };
    /// `area`: the device's sub-lane. One rectangle per pixel at most, whatever the number of kernels.
    std::vector<Rect> rects(int device, const QRectF& area, const TimeAxis& axis) const;
    QString text(const Rect& kernel) const; ///< "gemm of F0.1: 1.2 ms, matrix products"
    /// `shown`: false where the lanes show another side than the measured one; then only what the sub-lane is.
    void paint(QPainter& painter, int device, const QRectF& area, const TimeAxis& axis, const Theme& theme,
               bool shown) const;

private:
    const Document& m_document;
};

} // namespace pipewright
