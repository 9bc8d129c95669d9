// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/designer/screencheck.h"

#include "core/base/diagnostic.h"

#include <QString>

#include <cstdio>
#include <cstdlib>

namespace pipewright {

namespace {

constexpr int exitBadInput = 2; // as the commands' (app/command.h)

// Static, as a message handler is a plain function; only one application starts, on one thread.
QtMessageHandler previous = nullptr;
QString* said = nullptr;

QString triedScreen()
{
    for (const char* variable : {"QT_QPA_PLATFORM", "WAYLAND_DISPLAY", "DISPLAY"})
        if (const QByteArray value = qgetenv(variable); !value.isEmpty())
            return QStringLiteral("%1=%2").arg(QLatin1String(variable), QString::fromLocal8Bit(value));
    return QStringLiteral("no DISPLAY");
}

void collect(QtMsgType type, const QMessageLogContext& context, const QString& text)
{
    if (type != QtFatalMsg) {
        // Qt's warnings while it looks for a screen are the reason if it finds none.
        if (QLatin1String(context.category).startsWith(QLatin1String("qt.qpa")))
            *said += (said->isEmpty() ? QString() : QStringLiteral("; ")) + text.simplified();
        else if (previous)
            previous(type, context, text);
        return;
    }
    const QString reason = said->isEmpty() ? text.section(QLatin1Char('\n'), 0, 0) : *said;
    const Diagnostic diagnostic{
        Severity::Error,
        {},
        "the designer cannot reach a screen (" + triedScreen().toStdString() + "): " + reason.toStdString(),
        "log in graphically, use ssh -X, correct the variable, or use a command: pipewright --help"};
    std::fprintf(stderr, "%s\n", toString(diagnostic).c_str());
    std::fflush(stderr);
    std::_Exit(exitBadInput); // returning would abort; nothing needs cleaning up yet
}

} // namespace

ScreenCheck::ScreenCheck()
{
    said = new QString;
    previous = qInstallMessageHandler(collect);
}

ScreenCheck::~ScreenCheck()
{
    qInstallMessageHandler(previous);
    delete said;
    said = nullptr;
}

} // namespace pipewright
