// SPDX-License-Identifier: GPL-3.0-or-later
// Paints the building block scaled to the widget and computes its bound. O(passes).
#include "gui/buildingblock/buildingblockpreview.h"

#include "core/buildingblock/lifespan.h"
#include "core/buildingblock/publishedblocklist.h"
#include "gui/buildingblock/buildingblockcells.h"
#include "gui/widgets/labels.h"
#include "gui/widgets/layouts.h"
#include "gui/widgets/words.h"

#include <QKeyEvent>
#include <QPainter>

#include <algorithm>

namespace pipewright {

namespace {

constexpr int pictureHeight = 76;

} // namespace

std::optional<BuildingBlock> blockOf(const Design& design)
{
    if (design.buildingBlock) {
        try {
            return completed(*design.buildingBlock);
        } catch (const Error&) {
            return std::nullopt;
        }
    }
    if (design.schedule.devices() == 0)
        return std::nullopt;
    return blockOfFamily(design.schedule.family, design.schedule.devices(), design.schedule.microbatches);
}

BuildingBlockPreview::BuildingBlockPreview(Document& document, QWidget* parent)
    : QWidget(parent), m_document(document), m_picture(new QWidget(this)),
      m_caption(makeCaption({}, TextSize::Small, this))
{
    m_picture->setFixedHeight(pictureHeight);
    m_picture->setFocusPolicy(Qt::StrongFocus);
    m_picture->setCursor(Qt::PointingHandCursor);
    m_picture->setAccessibleName(tr("Edit the building block"));
    m_picture->installEventFilter(this);
    auto* layout = makeLayout<QVBoxLayout>(this, {0, 0, 0, 0}, 6);
    layout->addWidget(makeHeading(tr("Building block"), this));
    layout->addWidget(m_picture);
    m_caption->setWordWrap(true); // a narrow column
    layout->addWidget(m_caption);
    connect(&m_document, &Document::designChanged, this, &BuildingBlockPreview::refresh);
    refresh();
}

QString BuildingBlockPreview::caption() const
{
    return m_caption->text();
}

void BuildingBlockPreview::refresh()
{
    m_block = blockOf(m_document.design());
    if (m_block) {
        int longest = 0;
        for (int stage = 0; stage < m_block->stages(); ++stage)
            longest = std::max(longest, lifespan(*m_block, stage));
        const std::vector<int> bound = liveBound(*m_block);
        const double chunks = double(m_block->stages()) / std::max(1, m_block->devices());
        // No more than all microbatches can be live, which matters when a step has few.
        const double most = std::min<double>(*std::max_element(bound.begin(), bound.end()) / chunks,
                                             m_document.design().schedule.microbatches);
        m_caption->setText(
            tr("interval %1 · lifespan %2 · bound %3").arg(m_block->interval).arg(longest).arg(multipleText(most)));
    } else {
        m_caption->setText(tr("no building block repeats in this order"));
    }
    m_picture->setToolTip(
        tr("The passes of one microbatch, repeated every interval. A stage holds its activation for a lifespan;\n"
           "a device never holds more than the bound, in microbatches. Click to edit."));
    m_picture->update();
}

bool BuildingBlockPreview::eventFilter(QObject* watched, QEvent* event)
{
    if (watched != m_picture)
        return QWidget::eventFilter(watched, event);
    if (event->type() == QEvent::Paint) {
        const Theme& theme = Theme::of(*this);
        QPainter painter(m_picture);
        painter.setRenderHint(QPainter::Antialiasing);
        painter.setPen(QPen(m_picture->hasFocus() ? theme.accent : theme.hairline, 1));
        painter.setBrush(theme.lane);
        painter.drawRoundedRect(QRectF(m_picture->rect()).adjusted(0.5, 0.5, -0.5, -0.5), Theme::controlRadius,
                                Theme::controlRadius);
        if (m_block)
            paintBuildingBlock(painter, QRectF(m_picture->rect()).adjusted(10, 8, -10, -8), *m_block, *this);
        else {
            painter.setPen(theme.dim);
            painter.setFont(Theme::words(TextSize::Small));
            painter.drawText(m_picture->rect(), Qt::AlignCenter, tr("Click to draw one"));
        }
        return true;
    }
    if (event->type() == QEvent::MouseButtonRelease && static_cast<QMouseEvent*>(event)->button() == Qt::LeftButton) {
        Q_EMIT opened();
        return true;
    }
    if (event->type() == QEvent::KeyPress) {
        const int key = static_cast<QKeyEvent*>(event)->key();
        if (key == Qt::Key_Return || key == Qt::Key_Enter || key == Qt::Key_Space) {
            Q_EMIT opened();
            return true;
        }
    }
    return QWidget::eventFilter(watched, event);
}

} // namespace pipewright

#include "moc_buildingblockpreview.cpp"
