// SPDX-License-Identifier: GPL-3.0-or-later
// The loss of a run as it falls: one line, scaled to what there is, at most two points per pixel kept.
#pragma once

#include <QWidget>

#include <vector>

namespace pipewright {

class LossCurve : public QWidget {
    Q_OBJECT

public:
    explicit LossCurve(QWidget* parent = nullptr);
    void clear();
    void append(double loss);
    std::size_t count() const { return m_losses.size(); }
    QSize sizeHint() const override { return {320, 72}; }

protected:
    void paintEvent(QPaintEvent*) override;

private:
    std::vector<double> m_losses;
};

} // namespace pipewright
