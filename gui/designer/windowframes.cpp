// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/designer/windowframes.h"

#include <QEvent>
#include <QSettings>
#include <QSplitter>
#include <QWidget>

namespace pipewright {

namespace {

const QString geometryKey = QStringLiteral("windows/%1");
/// The borders that can be dragged in a window, in the order they were made.
const QString splitterKey = QStringLiteral("splitters/%1/%2");

} // namespace

void WindowFrames::remember(QWidget* window, const QString& key)
{
    window->setObjectName(key);
    window->restoreGeometry(m_settings.value(geometryKey.arg(key)).toByteArray());
    const QList<QSplitter*> splitters = window->findChildren<QSplitter*>();
    for (qsizetype i = 0; i < splitters.size(); ++i)
        splitters[i]->restoreState(m_settings.value(splitterKey.arg(key).arg(i)).toByteArray());
    window->installEventFilter(this);
}

bool WindowFrames::eventFilter(QObject* watched, QEvent* event)
{
    // A window that stands in another one has the frame of that.
    if (event->type() == QEvent::Hide && static_cast<QWidget*>(watched)->isWindow()) {
        m_settings.setValue(geometryKey.arg(watched->objectName()), static_cast<QWidget*>(watched)->saveGeometry());
        const QList<QSplitter*> splitters = watched->findChildren<QSplitter*>();
        for (qsizetype i = 0; i < splitters.size(); ++i)
            m_settings.setValue(splitterKey.arg(watched->objectName()).arg(i), splitters[i]->saveState());
    }
    return QObject::eventFilter(watched, event);
}

} // namespace pipewright
