// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/widgets/systemtheme.h"

#include "gui/widgets/theme.h"

#include <QApplication>
#include <QDBusPendingCallWatcher>
#include <QDBusPendingReply>
#include <QDBusVariant>
#include <QEvent>
#include <QFileInfo>
#include <QPalette>

namespace pipewright {

namespace {

const QString service = QStringLiteral("org.freedesktop.portal.Desktop");
const QString path = QStringLiteral("/org/freedesktop/portal/desktop");
const QString settings = QStringLiteral("org.freedesktop.portal.Settings");
const QString appearance = QStringLiteral("org.freedesktop.appearance");
const QString colorScheme = QStringLiteral("color-scheme");

} // namespace

SystemTheme::SystemTheme(const QDBusConnection& bus, QObject* parent) : QObject(parent)
{
    qApp->installEventFilter(this);
    if (!bus.isConnected())
        return;
    QDBusConnection connection(bus);
    connection.connect(service, path, settings, QStringLiteral("SettingChanged"), this,
                       SLOT(settingChanged(QDBusMessage)));
    QDBusMessage read = QDBusMessage::createMethodCall(service, path, settings, QStringLiteral("Read"));
    read.setArguments({appearance, colorScheme});
    auto* answer = new QDBusPendingCallWatcher(connection.asyncCall(read), this);
    connect(answer, &QDBusPendingCallWatcher::finished, this, [this](QDBusPendingCallWatcher* call) {
        if (const QDBusPendingReply<QDBusVariant> reply(*call); reply.isValid())
            take(reply.value().variant());
        call->deleteLater(); // without an answer the palette's change is what there is
    });
}

QDBusConnection SystemTheme::sessionBus()
{
    // Qt would start a bus of its own where there is none.
    const bool isThere = qEnvironmentVariableIsSet("DBUS_SESSION_BUS_ADDRESS")
                         || QFileInfo::exists(qEnvironmentVariable("XDG_RUNTIME_DIR") + QStringLiteral("/bus"));
    return isThere ? QDBusConnection::sessionBus() : QDBusConnection(QString());
}

/// Its arguments: namespace, key, value.
void SystemTheme::settingChanged(const QDBusMessage& message)
{
    if (const QVariantList told = message.arguments();
        told.size() == 3 && told[0].toString() == appearance && told[1].toString() == colorScheme)
        take(told[2]);
}

/// 0: no preference, 1: dark, 2: light.
void SystemTheme::take(QVariant value)
{
    while (value.canConvert<QDBusVariant>()) // Read() wraps it twice
        value = value.value<QDBusVariant>().variant();
    bool isNumber = false;
    const uint scheme = value.toUInt(&isNumber);
    m_fromPortal = isNumber;
    if (isNumber && (scheme == 1 || scheme == 2))
        set(scheme == 1);
    else
        m_isDark.reset();
}

void SystemTheme::set(bool dark)
{
    if (m_isDark == dark)
        return;
    m_isDark = dark;
    Q_EMIT changed(dark);
}

bool SystemTheme::eventFilter(QObject* watched, QEvent* event)
{
    if (event->type() == QEvent::ThemeChange && watched->isWindowType() && !m_fromPortal) {
        const QPalette ours = QApplication::palette();
        QApplication::setPalette(QPalette()); // the platform's, which ours hides
        const bool dark = Theme::of(QApplication::palette()).isDark;
        QApplication::setPalette(ours);
        set(dark);
    }
    return false;
}

} // namespace pipewright

#include "moc_systemtheme.cpp"
