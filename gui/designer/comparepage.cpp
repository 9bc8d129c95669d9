// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/designer/comparepage.h"

#include "gui/compare/comparewindow.h"
#include "gui/designer/otherwindows.h"
#include "gui/widgets/labels.h"
#include "gui/widgets/layouts.h"

#include <QEvent>

#include <utility>

namespace pipewright {

ComparePage::ComparePage(OtherWindows& windows, QWidget* parent)
    : QWidget(parent), m_windows(windows),
      m_elsewhere(makeCaption(tr("Compared in a window of its own, which comes back here when it is closed."),
                              TextSize::Normal, this))
{
    m_elsewhere->setContentsMargins(18, 8, 12, 8);
    m_elsewhere->setWordWrap(true);
    m_elsewhere->setAlignment(Qt::AlignLeft | Qt::AlignTop);
    makeLayout<QVBoxLayout>(this, {0, 0, 0, 0}, 0)->addWidget(m_elsewhere);
}

void ComparePage::showEvent(QShowEvent* event)
{
    QWidget::showEvent(event);
    take();
}

void ComparePage::take()
{
    auto& window = m_windows.putInto<CompareWindow>(*this);
    if (!std::exchange(m_follows, true)) {
        window.installEventFilter(this);
        connect(&window, &CompareWindow::windowWanted, this, [this] { m_windows.open<CompareWindow>(); });
    }
    m_elsewhere->setVisible(window.parentWidget() != this);
}

bool ComparePage::eventFilter(QObject* watched, QEvent* event)
{
    if (event->type() == QEvent::ParentChange)
        m_elsewhere->setVisible(static_cast<QWidget*>(watched)->parentWidget() != this);
    // Once it is closed; not while it is hidden to become a window.
    if (event->type() == QEvent::Hide && static_cast<QWidget*>(watched)->isWindow())
        QMetaObject::invokeMethod(
            this,
            [this] {
                if (isVisible())
                    take();
            },
            Qt::QueuedConnection);
    return QWidget::eventFilter(watched, event);
}

} // namespace pipewright

#include "moc_comparepage.cpp"
