// SPDX-License-Identifier: GPL-3.0-or-later
// A shown main window with the example in it, whose settings and recordings go to a folder of its own.
#pragma once

#include "gui/designer/designer.h"
#include "gui/designer/footline.h"
#include "gui/designer/mainwindow.h"
#include "gui/designer/verdictstrip.h"
#include "gui/inspector/blockchip.h"
#include "gui/inspector/tray.h"

#include <QTemporaryDir>
#include <QTest>

namespace pipewright {

/// A number of the window by its name: one of the five verdicts, or of the line at the bottom.
inline QString shownNumber(MainWindow& window, const char* name)
{
    constexpr const char* verdicts[] = {"step", "bubble", "peak", "throughput", "MFU"};
    for (int i = 0; i < VerdictStrip::verdictCount; ++i)
        if (qstrcmp(verdicts[i], name) == 0)
            return window.verdicts().value(static_cast<VerdictStrip::Verdict>(i));
    return window.foot().value(QLatin1String(name));
}

struct MainWindowFixture {
    QTemporaryDir folder;
    MainWindow window;

    MainWindowFixture() : window(options())
    {
        window.document().reset(exampleDesign());
        window.resize(1480, 900);
        window.show();
        QTest::qWait(0);
    }
    MainWindow::Options options() const
    {
        MainWindow::Options options;
        options.settingsFile = folder.filePath(QStringLiteral("settings.ini"));
        options.traceFolder = folder.filePath(QStringLiteral("runs"));
        return options;
    }
    Document& document() { return window.document(); }
    BlockChip* firstChip()
    {
        for (BlockChip* chip : window.tray().findChildren<BlockChip*>()) {
            if (chip->isVisible())
                return chip;
        }
        return nullptr;
    }
};

} // namespace pipewright
