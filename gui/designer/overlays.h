// SPDX-License-Identifier: GPL-3.0-or-later
// Recordings beside the design: laying them over it, showing them in windows of their own, taking their costs, and the
// report. Traces of other tools are imported first, in a trace window, which shows the progress.
#pragma once

#include "gui/designer/desk.h"

#include <QList>

class QAction;

namespace pipewright {

class TraceWindow;
class WindowFrames;

class Overlays : public QObject {
    Q_OBJECT

public:
    /// `folder`: where runs are recorded. `everywhere`: actions of all windows.
    Overlays(const Desk& desk, const QString& folder, WindowFrames& frames, const QList<QAction*>& everywhere);

    TraceWindow* openTraces(const QStringList& paths); ///< of several ranks, in one window
    void openLanes();                                  ///< of the overlaid run
    /// Traces of several ranks or of another tool are imported into one file first.
    void layOver(const QStringList& paths);
    void lay(const QString& recording); ///< tells when it does not fit
    void choose();
    void calibrate(); ///< takes the costs of the overlaid run
    /// Takes the costs of a recorded run or of a design of the same model for the present schedule.
    void takeCostsFrom(const QString& path);
    void chooseCosts();
    void exportReport();
    bool reportTo(const QString& path); ///< HTML report of the overlaid run; false after an error message
    void query();

Q_SIGNALS:
    void opened(const QStringList& traces);
    void said(const QString& text);

private:
    Desk m_desk;
    Document& m_document;
    const QString m_folder;
    WindowFrames& m_frames;
    const QList<QAction*> m_everywhere;
};

} // namespace pipewright
