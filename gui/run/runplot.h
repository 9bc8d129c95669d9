// SPDX-License-Identifier: GPL-3.0-or-later
// A live plot of one value per step of a run, with axes: steps below, least and greatest value at the left. At most two
// points per pixel are drawn.
#pragma once

#include <QWidget>

#include <functional>
#include <vector>

namespace pipewright {

class RunPlot : public QWidget {
    Q_OBJECT

public:
    /// `write` makes an axis label of a value; `fromZero`: the axis begins there.
    RunPlot(const QString& name, std::function<QString(double)> write, bool fromZero, QWidget* parent = nullptr);
    void clear(int steps);     ///< `steps`: the expected number
    void append(double value); ///< of the next step; a value that is not finite is counted but not drawn
    std::size_t count() const { return m_values.size(); }
    QString last() const;          ///< the newest value, written
    QStringList axisTexts() const; ///< lowest and highest value, first and last step; empty without values
    QSize sizeHint() const override { return {260, 84}; }
    QSize minimumSizeHint() const override { return {120, 64}; }

protected:
    void paintEvent(QPaintEvent* event) override;

private:
    std::pair<double, double> bounds() const; ///< of the values; the height is never 0

    QString m_name;
    std::function<QString(double)> m_write;
    bool m_fromZero;
    int m_steps = 1, m_seen = 0;
    std::vector<std::pair<int, double>> m_values; ///< step from 1, value
};

} // namespace pipewright
