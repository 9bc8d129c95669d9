// SPDX-License-Identifier: GPL-3.0-or-later
// For widgets whose items, pictures or labels hold colours of a theme, which a palette does not reach.
#pragma once

#include <QEvent>
#include <QObject>

#include <utility>

namespace pipewright {

/// Calls `refresh` whenever the widget's palette has changed.
template<typename Refresh>
void onThemeChange(QObject* widget, Refresh refresh)
{
    struct Watch : QObject {
        Watch(QObject* watched, Refresh refresh) : QObject(watched), m_refresh(std::move(refresh))
        {
            watched->installEventFilter(this);
        }
        bool eventFilter(QObject*, QEvent* event) override
        {
            if (event->type() == QEvent::PaletteChange)
                m_refresh();
            return false;
        }
        Refresh m_refresh;
    };
    new Watch(widget, std::move(refresh));
}

} // namespace pipewright
