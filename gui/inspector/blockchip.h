// SPDX-License-Identifier: GPL-3.0-or-later
// One block as a chip: fill and texture of its operation, letter and microbatch. In the tray it can be dragged (MIME
// type application/x-pipewright-block, payload toString(block)) or placed by Return or Space.
#pragma once

#include "core/schedule/block.h"

#include <QWidget>

class QMimeData;

namespace pipewright {

/// Paints a block's fill and texture, as on the timeline.
void paintBlockFill(QPainter& painter, const QRectF& rect, Op op, const QWidget& widget);

class BlockChip : public QWidget {
    Q_OBJECT

public:
    explicit BlockChip(const Block& block, QWidget* parent = nullptr);
    const Block& block() const { return m_block; }
    void setBlock(const Block& block);
    void setDraggable(bool draggable);
    QSize sizeHint() const override;

    /// The data of a drag, of type blockMimeType; the caller owns it.
    QMimeData* mimeData() const;

Q_SIGNALS:
    void activated(const Block& block); ///< double click, Return or Space
    void dragStarted(const Block& block);
    void chosen(const Block& block); ///< pressed, or reached by Tab

protected:
    void paintEvent(QPaintEvent*) override;
    void mousePressEvent(QMouseEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void mouseDoubleClickEvent(QMouseEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;
    void focusInEvent(QFocusEvent* event) override;

private:
    Block m_block;
    bool m_draggable = false;
    QPoint m_pressedAt;
};

} // namespace pipewright
