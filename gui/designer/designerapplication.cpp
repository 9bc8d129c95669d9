// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/designer/designerapplication.h"

#include "gui/designer/mainwindow.h"
#include "gui/document/autosave.h"
#include "gui/widgets/systemtheme.h"
#include "gui/widgets/theme.h"

#include <QMessageBox>
#include <QSettings>

#include <exception>
#include <new>

namespace pipewright {

namespace {

const QString themeKey = QStringLiteral("theme");

const Theme& themeOf(bool dark)
{
    return dark ? Theme::dark() : Theme::light();
}

constexpr std::size_t reserve = std::size_t{4} << 20; ///< bytes, for autosaving a design and for the message

/// Autosaves all open designs; true when each was written.
bool autosaveAll()
{
    bool all = true;
    for (QWidget* widget : QApplication::topLevelWidgets())
        if (auto* window = qobject_cast<MainWindow*>(widget)) {
            bool kept = false;
            if (Autosave* autosave = window->autosave()) {
                const auto seen = QObject::connect(autosave, &Autosave::written, window, [&kept] { kept = true; });
                autosave->flush();
                QCoreApplication::sendPostedEvents(autosave); // delivers the worker's report that it has written
                QObject::disconnect(seen);
            }
            all = all && kept;
        }
    return all;
}

} // namespace

DesignerApplication::DesignerApplication(int& argc, char** argv)
    : QApplication(argc, argv), m_reserve(std::make_unique<char[]>(reserve))
{
}

DesignerApplication::~DesignerApplication()
{
    delete m_message;
}

void DesignerApplication::followTheme(std::unique_ptr<SystemTheme> system)
{
    m_system = std::move(system);
    const QString chosen = QSettings().value(themeKey).toString();
    themeOf(chosen.isEmpty() ? Theme::of(palette()).isDark : chosen == QLatin1String("dark")).apply(*this);
    connect(m_system.get(), &SystemTheme::changed, this, [this](bool dark) {
        if (QSettings().value(themeKey).toString().isEmpty() && Theme::of(palette()).isDark != dark)
            themeOf(dark).apply(*this);
    });
}

void DesignerApplication::switchTheme(QSettings& settings)
{
    const auto* const application = qobject_cast<DesignerApplication*>(qApp);
    const Theme& next = themeOf(!Theme::of(palette()).isDark);
    next.apply(*qApp);
    if (application && application->m_system && application->m_system->isDark() == next.isDark)
        settings.remove(themeKey);
    else
        settings.setValue(themeKey, next.isDark ? QStringLiteral("dark") : QStringLiteral("light"));
}

bool DesignerApplication::notify(QObject* receiver, QEvent* event)
{
    try {
        return QApplication::notify(receiver, event);
    } catch (const std::exception& error) {
        tell(error);
    }
    return true; // handled: Qt must not try it again
}

void DesignerApplication::tell(const std::exception& error)
{
    m_reserve.reset();
    try {
        const bool starved = dynamic_cast<const std::bad_alloc*>(&error) != nullptr;
        const QString what = starved ? tr("there was not enough memory") : QString::fromUtf8(error.what());
        qWarning("an action failed: %s", qPrintable(what));
        if (!m_message) {
            const QString kept =
                autosaveAll() ? tr("Unsaved work was autosaved, and is offered at the next start if this one fails.")
                              : tr("Unsaved work could not be autosaved: save it now, under another name.");
            m_message = new QMessageBox(QMessageBox::Warning, tr("Not done"),
                                        tr("The last action failed: %1.\n\n%2").arg(what, kept));
            if (starved)
                m_message->setInformativeText(tr("Close other windows and programs, or take a smaller design."));
            m_message->setAttribute(Qt::WA_DeleteOnClose);
            m_message->open();
        }
    } catch (const std::exception&) { // the message failed too: the reason is on standard error
    }
    m_reserve.reset(new (std::nothrow) char[reserve]);
}

} // namespace pipewright

#include "moc_designerapplication.cpp"
