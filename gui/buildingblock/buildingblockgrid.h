// SPDX-License-Identifier: GPL-3.0-or-later
// A building block as a grid of devices and time units. The passes of one microbatch can be dragged: along time by
// whole units, across devices with their whole stage. Neighbouring microbatches, one interval apart, are drawn pale, so
// that collisions are visible. A drag changes a preview (shown()); release emits edited() once, Escape restores. Alt
// with the arrow keys does the same.
#pragma once

#include "core/buildingblock/buildingblockedits.h"

#include <QWidget>

#include <optional>

namespace pipewright {

class BuildingBlockGrid : public QWidget {
    Q_OBJECT

public:
    explicit BuildingBlockGrid(QWidget* parent = nullptr);

    void setBlock(const BuildingBlock& block, const QStringList& devices); ///< with the devices' names
    const BuildingBlock& shown() const { return m_shown; }                 ///< the preview while dragging
    const std::vector<PassConflict>& conflicts() const { return m_conflicts; }
    int selectedPass() const { return m_selected; } ///< index into passes, -1: none
    void selectPass(int pass);
    QRectF rectOfPass(int pass) const;  ///< in this widget's coordinates
    int passAt(QPointF position) const; ///< -1: none
    QString nameOfPass(int pass) const; ///< "F2.m at 3 on GPU 2"
    /// Moves the selected pass by units of time, or its stage by devices, as one edit.
    void moveSelected(int units, int devices);
    void settleSelected(); ///< to the first start with its data present and no collision

    QSize sizeHint() const override;
    int greatestHeight() const; ///< height of the whole grid
    QSize minimumSizeHint() const override;

Q_SIGNALS:
    void previewed();                 ///< shown() changed during a drag
    void edited(const QString& what); ///< shown() is the wanted block; the owner sets it
    void selectionChanged();
    void refused(const QString& why);

protected:
    void paintEvent(QPaintEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void mouseReleaseEvent(QMouseEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;
    bool event(QEvent* event) override;

private:
    static constexpr int headerWidth = 72, rulerHeight = 26;
    struct Drag {
        QPointF from;
        int start = 0, device = 0;
        bool moving = false;
    };
    int units() const; ///< columns drawn
    double unitWidth() const;
    double laneHeight() const;
    double xOf(double unit) const;
    double yOf(int device) const;
    int deviceOf(int pass) const;
    QString stagesOf(int device) const; ///< "stages 0, 7"
    void show(BuildingBlock block);
    void stepSelection(int direction, bool acrossDevices);
    void paintLanes(class QPainter& painter) const;
    void paintLifespans(QPainter& painter) const;
    void paintPasses(QPainter& painter) const;
    void paintConflicts(QPainter& painter) const;

    BuildingBlock m_block, m_shown;
    QStringList m_devices;
    std::vector<PassConflict> m_conflicts;
    int m_selected = -1;
    std::optional<Drag> m_drag;
};

} // namespace pipewright
