// SPDX-License-Identifier: GPL-3.0-or-later
// Live loss curves, one per design: the mean over the seeds so far, smoothed by a moving average named in the caption.
// Curves differ by colour, dashes and labels at their ends; the sequential reference is thick and in the text colour. A
// repaint costs at most two points per pixel and curve.
#pragma once

#include "core/exchange/losspicture.h"

#include <QWidget>

namespace pipewright {

class LossPlot : public QWidget {
    Q_OBJECT

public:
    explicit LossPlot(QWidget* parent = nullptr);

    /// `updates`: their total number, the width of the plot.
    void begin(int updates);
    void append(std::size_t curve, const std::string& name, bool reference, std::uint64_t seed, double loss);
    const std::vector<LossSeries>& curves() const { return m_curves; }
    /// The highlighted curve; -1: none.
    void setCurrent(int curve);
    QSize sizeHint() const override { return {640, 320}; }

protected:
    void paintEvent(QPaintEvent* event) override;

private:
    std::vector<LossSeries> m_curves;
    int m_updates = 1, m_current = -1;
};

} // namespace pipewright
