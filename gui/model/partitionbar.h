// SPDX-License-Identifier: GPL-3.0-or-later
// The model's layers in a row, cut into stages: each layer as wide as its work (or its parameters), embedding and head
// in their own colours, and a handle on every border. Dragging one moves layers between stages; release emits moved()
// once, Escape restores. Arrows select a border, Alt with arrows moves it by one layer.
#pragma once

#include "core/design/design.h"

#include <QWidget>

#include <optional>

namespace pipewright {

class PartitionBar : public QWidget {
    Q_OBJECT

public:
    enum class Measure { Work, Parameters };
    explicit PartitionBar(QWidget* parent = nullptr);

    void setDesign(const Design& design); ///< without a model the bar is empty
    void setMeasure(Measure measure);
    const std::vector<int>& partition() const { return m_shown; } ///< the preview while dragging
    int currentBorder() const { return m_border; }
    double xOfBorder(int border) const; ///< between stage `border` and the next
    int borderAt(double x) const;       ///< within reach of the mouse, -1: none
    void moveBorder(int border, int layers);
    double shareOfStage(int stage) const; ///< of the measure's total

    QSize sizeHint() const override { return {700, leastBar + labelHeight}; }
    QSize minimumSizeHint() const override { return {300, leastBar + labelHeight}; }

Q_SIGNALS:
    void previewed(const std::vector<int>& partition); ///< while dragging
    void cancelled();
    void moved(const std::vector<int>& partition); ///< one finished edit

protected:
    void paintEvent(QPaintEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void mouseReleaseEvent(QMouseEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;
    bool event(QEvent* event) override;

private:
    static constexpr int leastBar = 44, mostBar = 160, labelHeight = 42;
    int barHeight() const { return height() - labelHeight; }
    double weightOf(std::size_t layer) const;
    double xOfLayer(std::size_t layer) const; ///< left edge; for the layer count: the right end
    QString layersText(std::size_t first, std::size_t end) const;
    void layOut();

    std::vector<Layer> m_layers;
    std::vector<int> m_partition, m_shown;
    std::vector<double> m_edges; ///< left edge of every layer as a share of the width, and 1
    Measure m_measure = Measure::Work;
    int m_border = 0;
    bool m_dragging = false;
};

} // namespace pipewright
