// SPDX-License-Identifier: GPL-3.0-or-later
// Saves unsaved work against a crash. A few seconds after a change the design is written, atomically and on a worker
// thread, into a folder of the application; a clean end removes the file. Every instance holds a lock beside its file.
// So the next start offers the files of crashed instances for recovery, and not those of running ones.
#pragma once

#include "core/design/design.h"

#include <QDateTime>
#include <QLockFile>
#include <QObject>
#include <QString>
#include <QThreadPool>
#include <QTimer>

#include <memory>
#include <vector>

namespace pipewright {

class Document;

class Autosave : public QObject {
    Q_OBJECT

public:
    /// `folder` is created when missing. Throws Error when it cannot be.
    Autosave(Document& document, const QString& folder, QObject* parent = nullptr);
    /// Without finish() the file stays, as after a crash.
    ~Autosave() override;

    void setDelay(int milliseconds) { m_timer.setInterval(milliseconds); }
    /// Writes now, if there is something to write, and waits for it.
    void flush();
    /// The clean end: work was saved or given up.
    void finish();
    QString path() const { return m_path; }

    struct Abandoned {
        QString file;         ///< the autosave file itself
        QString originalPath; ///< of the document; empty when it was never saved
        QDateTime savedAt;
        Design design;
    };
    /// The files of instances that no longer run, newest first. Unreadable files are skipped and added to `unreadable`
    /// as "file: why".
    static std::vector<Abandoned> abandoned(const QString& folder, QStringList* unreadable = nullptr);
    /// Removes a leftover after it was recovered or declined.
    static void discard(const Abandoned& leftover);
    static QString defaultFolder();

Q_SIGNALS:
    void failed(const QString& reason);
    void written(); ///< the present work is kept

private:
    void schedule();
    void write();

    Document& m_document;
    QString m_path;
    std::unique_ptr<QLockFile> m_lock;
    QTimer m_timer;
    QThreadPool m_worker;
    bool m_finished = false;
};

} // namespace pipewright
