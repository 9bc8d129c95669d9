// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/document/autosave.h"

#include "core/base/textfile.h"
#include "core/files/designfile.h"
#include "core/json/jsonvalue.h"
#include "gui/document/document.h"
#include "gui/widgets/runtimefolder.h"

#include <fmt/format.h>

#include <QCoreApplication>
#include <QDir>
#include <QFile>
#include <QFileInfo>
#include <QStandardPaths>
#include <QUuid>

#include <algorithm>

namespace pipewright {

namespace {

constexpr int delayMilliseconds = 3000;

QString lockPath(const QString& file)
{
    return file + QStringLiteral(".lock");
}

std::unique_ptr<QLockFile> makeLock(const QString& file)
{
    auto lock = std::make_unique<QLockFile>(lockPath(file));
    lock->setStaleLockTime(0); // stale only when its process is gone, however long it has been running
    return lock;
}

} // namespace

Autosave::Autosave(Document& document, const QString& folder, QObject* parent) : QObject(parent), m_document(document)
{
    if (!makePrivateFolder(folder))
        throw Error(folder.toStdString(), "cannot create the folder for autosaved work");
    const QString name = QStringLiteral("%1-%2.json")
                             .arg(QCoreApplication::applicationPid())
                             .arg(QUuid::createUuid().toString(QUuid::Id128).left(8));
    m_path = QDir(folder).filePath(name);
    m_lock = makeLock(m_path);
    if (!m_lock->tryLock(0))
        throw Error(folder.toStdString(), "cannot write to the folder for autosaved work");
    m_worker.setMaxThreadCount(1);
    m_timer.setSingleShot(true);
    m_timer.setInterval(delayMilliseconds);
    connect(&m_timer, &QTimer::timeout, this, &Autosave::write);
    connect(&m_document, &Document::designChanged, this, &Autosave::schedule);
    connect(m_document.undoStack(), &QUndoStack::cleanChanged, this, &Autosave::schedule);
}

Autosave::~Autosave()
{
    m_worker.waitForDone();
}

void Autosave::schedule()
{
    // Not restarted by further changes: a person who never pauses is still saved every few seconds.
    if (!m_finished && !m_timer.isActive())
        m_timer.start();
}

void Autosave::write()
{
    if (m_finished)
        return;
    m_worker.waitForDone();
    if (m_document.undoStack()->isClean()) {
        QFile::remove(m_path); // the design's own file has the present state
        Q_EMIT written();
        return;
    }
    m_worker.start([this, design = m_document.design(), original = m_document.path(), path = m_path] {
        try {
            const JsonValue wrapped{{"original_path", original.toStdString()},
                                    {"saved_at", QDateTime::currentDateTimeUtc().toString(Qt::ISODate).toStdString()},
                                    {"design", designToJson(design)}};
            writeFileAtomically(path.toStdString(), wrapped.dump(JsonValue::InvalidText::Replace), true);
            QMetaObject::invokeMethod(
                this, [this] { Q_EMIT written(); }, Qt::QueuedConnection);
        } catch (const std::exception& error) {
            const QString reason = QString::fromUtf8(error.what());
            QMetaObject::invokeMethod(
                this, [this, reason] { Q_EMIT failed(reason); }, Qt::QueuedConnection);
        }
    });
}

void Autosave::flush()
{
    m_timer.stop();
    write();
    m_worker.waitForDone();
}

void Autosave::finish()
{
    m_finished = true;
    m_timer.stop();
    m_worker.waitForDone();
    QFile::remove(m_path);
    m_lock->unlock();
}

std::vector<Autosave::Abandoned> Autosave::abandoned(const QString& folder, QStringList* unreadable)
{
    std::vector<Abandoned> found;
    const QFileInfoList files = QDir(folder).entryInfoList({QStringLiteral("*.json")}, QDir::Files, QDir::Time);
    for (const QFileInfo& file : files) {
        const auto lock = makeLock(file.filePath());
        if (!lock->tryLock(0))
            continue; // its instance is alive
        QFile content(file.filePath());
        if (!content.open(QIODevice::ReadOnly))
            continue;
        try {
            const JsonValue wrapped = JsonValue::fromText(content.readAll().toStdString());
            const auto textOf = [&](const char* key) {
                const auto text = wrapped.member(key).text();
                if (!text)
                    throw Error({}, fmt::format("this is no saved design: it has no text \"{}\"", key));
                return *text;
            };
            Abandoned leftover;
            leftover.file = file.filePath();
            leftover.originalPath = QString::fromStdString(textOf("original_path"));
            leftover.savedAt = QDateTime::fromString(QString::fromStdString(textOf("saved_at")), Qt::ISODate);
            leftover.design = designFromJson(textOf("design"), file.fileName().toStdString());
            found.push_back(std::move(leftover));
        } catch (const std::exception& error) {
            // It cannot be offered; it is left where it is for a person to look at.
            if (unreadable)
                *unreadable << QStringLiteral("%1: %2").arg(file.filePath(), QString::fromUtf8(error.what()));
        }
    }
    return found;
}

void Autosave::discard(const Abandoned& leftover)
{
    QFile::remove(leftover.file);
    QFile::remove(lockPath(leftover.file));
}

QString Autosave::defaultFolder()
{
    return QDir(QStandardPaths::writableLocation(QStandardPaths::AppDataLocation)).filePath(QStringLiteral("autosave"));
}

} // namespace pipewright

#include "moc_autosave.cpp"
