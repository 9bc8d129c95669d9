// SPDX-License-Identifier: GPL-3.0-or-later
// Whether the desktop asks for a dark look, now and while the program runs. Most desktops say it through a portal on
// the session's D-Bus (namespace org.freedesktop.appearance, key color-scheme). Where none answers, a window is told
// that the platform's theme has changed, and the platform's palette says which look it has: Qt has a hint of its own
// only from 6.5 on. Nothing here waits for an answer.
#pragma once

#include <QDBusConnection>
#include <QDBusMessage>
#include <QObject>

#include <optional>

namespace pipewright {

class SystemTheme : public QObject {
    Q_OBJECT

public:
    /// Asks on that bus, which may be unconnected.
    explicit SystemTheme(const QDBusConnection& bus, QObject* parent = nullptr);
    /// The session's bus, unconnected where the environment names none: none is started for this.
    static QDBusConnection sessionBus();

    std::optional<bool> isDark() const { return m_isDark; } ///< nothing: not known, or no preference

Q_SIGNALS:
    void changed(bool dark);

protected:
    bool eventFilter(QObject* watched, QEvent* event) override;

private Q_SLOTS:
    void settingChanged(const QDBusMessage& message);

private:
    void take(QVariant value);
    void set(bool dark);

    std::optional<bool> m_isDark;
    bool m_fromPortal = false;
};

} // namespace pipewright
