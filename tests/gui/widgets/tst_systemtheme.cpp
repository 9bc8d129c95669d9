// SPDX-License-Identifier: GPL-3.0-or-later
// The desktop's look, asked and followed through a portal on a bus of the test's own, and without one.
#include "gui/designer/designerapplication.h"
#include "gui/widgets/systemtheme.h"
#include "gui/widgets/theme.h"
#include "testmain.h"

#include <QDBusConnection>
#include <QDBusVariant>
#include <QProcess>
#include <QSettings>
#include <QSignalSpy>
#include <QStandardPaths>
#include <QTemporaryDir>
#include <QTest>
#include <QWindow>

using namespace pipewright;

/// What a desktop offers.
class Portal : public QObject {
    Q_OBJECT
    Q_CLASSINFO("D-Bus Interface", "org.freedesktop.portal.Settings")

public:
    uint scheme = 1;

public Q_SLOTS:
    QDBusVariant Read(const QString& group, const QString& key)
    {
        const bool known = group == "org.freedesktop.appearance" && key == "color-scheme";
        return QDBusVariant(QVariant::fromValue(QDBusVariant(known ? QVariant(scheme) : QVariant())));
    }

Q_SIGNALS:
    void SettingChanged(const QString& group, const QString& key, const QDBusVariant& value);
};

class TestSystemTheme : public QObject {
    Q_OBJECT

    QProcess m_bus;
    QString m_address;
    QTemporaryDir m_folder;

    void tell(Portal& portal, uint scheme)
    {
        Q_EMIT portal.SettingChanged("org.freedesktop.appearance", "contrast", QDBusVariant(uint(1)));
        Q_EMIT portal.SettingChanged("org.freedesktop.appearance", "color-scheme", QDBusVariant(scheme));
    }

private Q_SLOTS:
    void initTestCase()
    {
        QSettings::setDefaultFormat(QSettings::IniFormat);
        QSettings::setPath(QSettings::IniFormat, QSettings::UserScope, m_folder.path());
        QCoreApplication::setOrganizationName("tested");
        if (QStandardPaths::findExecutable("dbus-daemon").isEmpty())
            QSKIP("dbus-daemon is not installed");
        m_bus.start("dbus-daemon",
                    {"--session", "--nofork", "--print-address", "--address=unix:dir=" + m_folder.path()});
        QVERIFY(m_bus.waitForReadyRead(20'000));
        m_address = QString::fromUtf8(m_bus.readLine()).trimmed();
    }
    void cleanupTestCase()
    {
        m_bus.terminate();
        m_bus.waitForFinished(20'000);
    }

    void theDesktopsLookIsFollowedUntilAnotherIsChosen()
    {
        QDBusConnection desktop = QDBusConnection::connectToBus(m_address, "desktop");
        Portal portal;
        QVERIFY(desktop.registerObject("/org/freedesktop/portal/desktop", &portal, QDBusConnection::ExportAllContents));
        QVERIFY(desktop.registerService("org.freedesktop.portal.Desktop"));
        auto& application = *qobject_cast<DesignerApplication*>(qApp);
        const auto isDark = [&] { return Theme::of(application.palette()).isDark; };
        Theme::light().apply(application);
        QSettings settings;
        settings.remove("theme");
        application.followTheme(std::make_unique<SystemTheme>(QDBusConnection::connectToBus(m_address, "designer")));
        QTRY_VERIFY(isDark());
        tell(portal, 2);
        QTRY_VERIFY(!isDark());
        tell(portal, 1);
        QTRY_VERIFY(isDark());
        // A choice stays, whatever the desktop says; the desktop's look chosen again is followed again.
        DesignerApplication::switchTheme(settings);
        QVERIFY(!isDark());
        QCOMPARE(settings.value("theme").toString(), QString("light"));
        tell(portal, 2);
        tell(portal, 1);
        QTest::qWait(100);
        QVERIFY(!isDark());
        DesignerApplication::switchTheme(settings);
        QVERIFY(isDark());
        QVERIFY(!settings.contains("theme"));
        tell(portal, 2);
        QTRY_VERIFY(!isDark());
        QDBusConnection::disconnectFromBus("designer");
        QDBusConnection::disconnectFromBus("desktop");
    }

    void withoutAPortalThePlatformsPaletteIsRead()
    {
        Theme::dark().apply(*qApp);
        const QPalette ours = qApp->palette();
        SystemTheme system{QDBusConnection(QString())};
        QSignalSpy changed(&system, &SystemTheme::changed);
        QVERIFY(!system.isDark());
        QWindow window;
        QEvent event(QEvent::ThemeChange);
        QCoreApplication::sendEvent(&window, &event);
        QCOMPARE(changed.count(), 1); // the offscreen platform is light
        QVERIFY(!changed.front().front().toBool());
        QCOMPARE(qApp->palette(), ours);
        QCoreApplication::sendEvent(&window, &event);
        QCOMPARE(changed.count(), 1);
    }
};

PIPEWRIGHT_TEST(TestSystemTheme, DesignerApplication)
#include "tst_systemtheme.moc"
