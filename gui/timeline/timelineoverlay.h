// SPDX-License-Identifier: GPL-3.0-or-later
// The transparent widget above the lanes: dependency arrows, and during a drag the block under the cursor,
// the place where it will go and the explanation. It takes no input; the view sets its content.
#pragma once

#include "core/schedule/block.h"

#include <QPainterPath>
#include <QRectF>
#include <QString>
#include <QTextLayout>
#include <QWidget>

#include <memory>
#include <optional>
#include <vector>

namespace pipewright {

struct OverlayContent {
    struct Arrow {
        QPointF from, to;      ///< from the end of a block to the start of another
        bool sameLane = false; ///< both on the top edges: the arrow runs above the blocks between them
    };
    std::vector<Arrow> arrows;
    struct Ghost {
        QRectF rect;
        Block block;
        int chunk = 0;
    };
    std::optional<Ghost> ghost;
    struct Mark {
        double x = 0;
        QString text;
    };
    std::vector<Mark> marks;
    std::optional<std::pair<double, double>> range; ///< x from and to
    QString rangeText;
    std::optional<Mark> crosshair; ///< the time under the cursor
    std::optional<Mark> pointed;   ///< a time that is pointed at in a chart below
    std::optional<QRectF> idle;    ///< idle time that is being explained …
    std::vector<QRectF> chain;     ///< … by these blocks
    std::optional<QRectF> band;    ///< a rubber band
    std::optional<QLineF> caret;   ///< where the block will be inserted
    bool legal = true;
    QString title, detail; ///< the label at the cursor; empty: none
    QPoint cursor;
    QRect plot;        ///< arrows and ghosts are clipped to it; labels stay inside the widget
    QString frameTime; ///< debugging: worst time of a recent paint

    bool isEmpty() const; ///< nothing of it is seen
};

/// A text wrapped to a width; the layout is kept until text or width change.
class WrappedText {
public:
    /// For a painter's default scale. Does nothing when text, font and width are unchanged.
    void set(const QString& text, const QFont& font, int width);
    QSize size() const { return m_size; } ///< of what is written; null without text
    void paint(QPainter& painter, QPoint topLeft) const;

private:
    std::unique_ptr<QTextLayout> m_layout;
    QString m_text;
    int m_width = 0;
    QSize m_size;
};

class TimelineOverlay : public QWidget {
public:
    explicit TimelineOverlay(QWidget* parent);
    ~TimelineOverlay() override;
    void setContent(OverlayContent content);
    const OverlayContent& content() const { return m_content; }

protected:
    void paintEvent(QPaintEvent* event) override;

private:
    void paintReadings(QPainter& painter) const;
    void paintLabel(QPainter& painter);
    OverlayContent m_content;
    WrappedText m_title, m_detail;
    std::unique_ptr<class TimelinePainter> m_blockPainter; ///< of the look and scale last painted in
};

} // namespace pipewright
