// SPDX-License-Identifier: GPL-3.0-or-later
// Keeps the geometry of windows, and the borders dragged in them, between sessions.
#pragma once

#include <QObject>
#include <QString>

class QSettings;
class QWidget;

namespace pipewright {

class WindowFrames : public QObject {
public:
    WindowFrames(QSettings& settings, QObject* parent) : QObject(parent), m_settings(settings) {}
    /// Restores the window as it was when one of this key was last hidden, and remembers it from now on.
    void remember(QWidget* window, const QString& key);

protected:
    bool eventFilter(QObject* watched, QEvent* event) override;

private:
    QSettings& m_settings;
};

} // namespace pipewright
