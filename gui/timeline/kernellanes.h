// SPDX-License-Identifier: GPL-3.0-or-later
// The sub-lanes of kernels: below a device's measured blocks, the kernels that its GPU ran for them, as recorded by
// CUPTI or PyTorch's profiler; for PyTorch ranks on CPUs, their operators. Wide kernels show their name, kernels that
// share a pixel are one rectangle, and a red foot marks a gap in which the GPU waited because the host had not launched
// the next kernel.
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
    /// `shown`: false when the lanes do not show the measured side; then only the name of the sub-lane is painted.
    void paint(QPainter& painter, int device, const QRectF& area, const TimeAxis& axis, const Theme& theme,
               bool shown) const;

private:
    const Document& m_document;
};

} // namespace pipewright
