// SPDX-License-Identifier: GPL-3.0-or-later
// How large a learning rate old weights bear, against momentum: gradients of weights `staleness` updates old, with
// prediction and without, on one weight and w^2 / 2. The present momentum and learning rate are a cross in it. Where
// the two lines cross, prediction turns from a loss into a gain.
#pragma once

#include <QWidget>

#include <vector>

namespace pipewright {

class StabilityPlot : public QWidget {
    Q_OBJECT

public:
    explicit StabilityPlot(QWidget* parent = nullptr);

    /// `steps`: how far the policy predicts; 0: it does not, and its own line is the one without prediction.
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
