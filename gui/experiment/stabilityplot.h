// SPDX-License-Identifier: GPL-3.0-or-later
// The largest stable learning rate against momentum for gradients of weights `staleness` updates old, with and without
// prediction, for one weight and the loss w² / 2. A cross marks the current momentum and learning rate. Where the two
// lines cross, prediction turns from a loss into a gain.
#pragma once

#include <QWidget>

#include <vector>

namespace pipewright {

class StabilityPlot : public QWidget {
    Q_OBJECT

public:
    explicit StabilityPlot(QWidget* parent = nullptr);

    /// `steps`: how far the policy predicts; 0: no prediction.
    void setPolicy(int staleness, int steps);
    void setPresent(double momentum, double learningRate);
    QSize sizeHint() const override { return {480, 280}; }

    struct Point {
        double momentum, predicted, plain;
    };
    const std::vector<Point>& points() const { return m_points; }

protected:
    void paintEvent(QPaintEvent* event) override;

private:
    int m_staleness = -1, m_steps = 0;
    double m_momentum = 0.9, m_rate = 0.03;
    std::vector<Point> m_points;
};

} // namespace pipewright
