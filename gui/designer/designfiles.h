// SPDX-License-Identifier: GPL-3.0-or-later
// The design's file: opening, saving, making a new design, printing it, the recent files, and the question before
// unsaved changes are lost. Recordings and traces are only recognised here; Overlays shows them.
#pragma once

#include "gui/designer/desk.h"
#include "gui/designer/recentfiles.h"

class QMenu;

namespace pipewright {

class DesignFiles : public QObject {
    Q_OBJECT

public:
    explicit DesignFiles(const Desk& desk);

    /// Opens a design or a recording; false (after telling why) when it cannot be read.
    bool openFile(const QString& path);
    /// Opens one file, the traces of several ranks, or a design and lays its recording or traces over it
    /// (designAmong()); false after an error message.
    bool openFiles(const QStringList& paths);
    /// The one design among files of which the others can be laid over it: one recording, or traces of other tools.
    /// Empty: these are other files. Throws Error: a trace is locked.
    static QString designAmong(const QStringList& paths);
    bool saveTo(const QString& path);
    QString name() const; ///< of the design, and of its file where there is one
    /// Asks what to do with unsaved changes; false when the user wants to stay.
    bool mayDiscard();
    bool restore(); ///< the file open when the last window closed; false: none, or deleted
    void endSession();
    void addRecent(const QStringList& paths);
    void fill(QMenu& recent);

    void newSchedule() { newScheduleOf({}); }
    void newScheduleOf(const QString& modelFile); ///< a file of the person's own; empty: a preset
    void open();
    void openRecordedExample(); ///< a run of a small model, laid over its prediction
    bool save();
    bool saveAs();
    void print();

Q_SIGNALS:
    void opened(); ///< another design took the place of the present one
    void tracesFound(const QStringList& paths);
    void recordingsFound(const QStringList& paths); ///< of the design just opened
    void recentChanged();

private:
    Desk m_desk;
    Document& m_document;
    RecentFiles m_recent;
};

} // namespace pipewright
