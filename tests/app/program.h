// SPDX-License-Identifier: GPL-3.0-or-later
// Runs the program itself in a folder of its own and keeps what it said.
#pragma once

#include "testpaths.h"

#include <QFile>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QProcess>
#include <QProcessEnvironment>
#include <QRegularExpression>
#include <QTemporaryDir>

#include <memory>

namespace pipewright::test {

struct Outcome {
    int code = -1; ///< -1: it crashed or did not end
    QString output, errors;

    /// The object that is all of the output; empty when it is anything else.
    QJsonObject json() const
    {
        QJsonParseError error;
        const QJsonDocument document = QJsonDocument::fromJson(output.toUtf8(), &error);
        return error.error == QJsonParseError::NoError ? document.object() : QJsonObject();
    }
};

class Workplace {
public:
    QString path(const QString& name) const { return m_folder.filePath(name); }

    QByteArray read(const QString& name) const
    {
        QFile file(path(name));
        return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
    }

    void write(const QString& name, const QByteArray& content) const
    {
        QFile file(path(name));
        if (file.open(QIODevice::WriteOnly | QIODevice::Truncate))
            file.write(content);
    }

    /// `words` are separated by blanks; the environment lacks `unset`.
    std::unique_ptr<QProcess> start(const QString& words, const QStringList& unset = {}) const
    {
        auto process = std::make_unique<QProcess>();
        QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
        for (const QString& variable : unset)
            environment.remove(variable);
        process->setProcessEnvironment(environment);
        process->setWorkingDirectory(m_folder.path());
        process->start(PIPEWRIGHT_PROGRAM, words.split(' ', Qt::SkipEmptyParts));
        process->waitForStarted();
        return process;
    }

    /// The next whole line with `text` of the channel that is read; the last one where none comes any more.
    static QByteArray lineWith(QProcess& process, const char* text)
    {
        QByteArray line;
        while (!line.contains(text)) {
            if (process.canReadLine())
                line = process.readLine();
            else if (!process.waitForReadyRead(60'000))
                break;
        }
        return line;
    }

    static Outcome finish(QProcess& process)
    {
        Outcome outcome;
        if (!process.waitForFinished(120'000))
            process.kill();
        else if (process.exitStatus() == QProcess::NormalExit)
            outcome.code = process.exitCode();
        outcome.output = QString::fromUtf8(process.readAllStandardOutput());
        outcome.errors = QString::fromUtf8(process.readAllStandardError());
        return outcome;
    }

    /// A shell's command, in which $pipewright is the program.
    Outcome shell(const QString& script) const
    {
        QProcess process;
        QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
        environment.insert("pipewright", PIPEWRIGHT_PROGRAM);
        process.setProcessEnvironment(environment);
        process.setWorkingDirectory(m_folder.path());
        process.start("/bin/sh", {"-c", script});
        return finish(process);
    }

    Outcome run(const QString& words, const QStringList& unset = {}) const { return finish(*start(words, unset)); }

    /// What `predict` says of it, as JSON; warns of a refusal.
    QJsonObject predicted(const QString& words) const
    {
        const Outcome outcome = run("predict " + words + " --json");
        if (outcome.code != 0)
            qWarning("%s", qPrintable(outcome.errors));
        return outcome.json();
    }

private:
    QTemporaryDir m_folder;
};

} // namespace pipewright::test
