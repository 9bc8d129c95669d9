// SPDX-License-Identifier: GPL-3.0-or-later
// Starts the real program on stand-in GPUs, and reads what these say about it: the bundle's program finds its plugin
// beside itself, and NVIDIA's libraries in the loader's path, as on a machine that has a GPU.
#pragma once

#include "testpaths.h"

#include <QDir>
#include <QFile>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QProcess>
#include <QProcessEnvironment>
#include <QTemporaryDir>

#include <map>

namespace pipewright::test {

struct StandInOutcome {
    int code = -1; ///< -1: it crashed or did not end
    QString output, errors;
    QJsonObject json;
    std::vector<QJsonObject> reports; ///< of each of its processes

    /// Over all processes.
    double counted(const QString& what) const
    {
        double sum = 0;
        for (const QJsonObject& report : reports)
            sum += report["counts"][what].toDouble();
        return sum;
    }
    double most(const QString& what) const
    {
        double most = 0;
        for (const QJsonObject& report : reports)
            most = std::max(most, report["most"][what].toDouble());
        return most;
    }
    /// What was done against the documentation, and what was not given back; empty: nothing.
    QString faults() const
    {
        QString text;
        for (const QJsonObject& report : reports) {
            for (const auto& each : report["broken"].toArray())
                text += each.toString() + "; ";
            const QJsonObject held = report["held"].toObject();
            for (auto each = held.begin(); each != held.end(); ++each)
                text += QString("%1 %2 left; ").arg(each.value().toDouble()).arg(each.key());
        }
        return text;
    }
    QStringList namesLike(const QString& what) const ///< of things that were counted
    {
        QStringList names;
        for (const QJsonObject& report : reports)
            for (const QString& name : report["counts"].toObject().keys())
                if (name.startsWith(what))
                    names << name.mid(what.size());
        return names;
    }
};

class StandInMachine {
public:
    explicit StandInMachine(int gpus = 1) { set("GPUS", QString::number(gpus)); }

    StandInMachine& set(const QString& setting, const QString& value)
    {
        m_settings["PIPEWRIGHT_STANDIN_" + setting] = value;
        return *this;
    }
    /// As a person would type it, in a folder that lasts as long as this.
    StandInOutcome run(const QString& words, int seconds = 120) const
    {
        QProcess process;
        QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
        for (const auto& [name, value] : m_settings)
            environment.insert(name, value);
        environment.insert("LD_LIBRARY_PATH", QString(STANDIN_BUNDLE) + "/lib");
        environment.insert("PIPEWRIGHT_STANDIN_REPORT", path("report"));
        environment.remove("CUDA_DEVICE_MAX_CONNECTIONS");
        process.setProcessEnvironment(environment);
        process.setWorkingDirectory(m_folder.path());
        process.start(QString(STANDIN_BUNDLE) + "/bin/pipewright", words.split(' ', Qt::SkipEmptyParts));
        StandInOutcome outcome;
        if (!process.waitForFinished(seconds * 1000)) {
            process.kill();
            process.waitForFinished();
        } else if (process.exitStatus() == QProcess::NormalExit) {
            outcome.code = process.exitCode();
        }
        outcome.output = QString::fromUtf8(process.readAllStandardOutput());
        outcome.errors = QString::fromUtf8(process.readAllStandardError());
        outcome.json = QJsonDocument::fromJson(outcome.output.toUtf8()).object();
        for (const QString& name : QDir(m_folder.path()).entryList({"report.*"})) {
            QFile file(path(name));
            if (file.open(QIODevice::ReadOnly))
                outcome.reports.push_back(QJsonDocument::fromJson(file.readAll()).object());
            file.remove();
        }
        return outcome;
    }
    /// A design of a model that a CPU computes quickly, as design.json.
    bool design(const QString& family, int devices, const QString& more = "--model byte-gpt-small") const
    {
        return make(family, devices, more + " --sequence 8 --microbatch-size 1");
    }
    /// With the model's own sequences and microbatches.
    bool make(const QString& family, int devices, const QString& more) const
    {
        return run(QString("new %1 --devices %2 --microbatches 4 %3 -o design.json --force")
                       .arg(family)
                       .arg(devices)
                       .arg(more))
                   .code
               == 0;
    }
    /// byte-gpt-small with a layer for each of eight stages, and narrower.
    bool deepModel(const QString& name) const
    {
        QFile from(PIPEWRIGHT_SOURCE_DIR "/resources/models/byte-gpt-small.json"), to(path(name));
        if (!from.open(QIODevice::ReadOnly) || !to.open(QIODevice::WriteOnly))
            return false;
        QJsonObject model = QJsonDocument::fromJson(from.readAll()).object();
        for (const auto& [size, value] : {std::pair{"layers", 8}, {"hidden", 16}, {"ffn", 32}})
            model[size] = value;
        return to.write(QJsonDocument(model).toJson()) > 0;
    }
    QString path(const QString& name) const { return m_folder.filePath(name); }

private:
    QTemporaryDir m_folder;
    std::map<QString, QString> m_settings;
};

inline const QString onGpus = "run design.json --backend cuda --json --progress none --force -o trace.db --steps ";

/// Of a run that was to compare its gradients; empty: all of it is right.
inline QString whyNotRight(const StandInOutcome& ran)
{
    if (ran.code != 0)
        return QString("ended with %1: %2").arg(ran.code).arg(ran.errors);
    const QJsonObject check = ran.json["gradient_check"].toObject();
    if (!check["max_relative_error"].isDouble()
        || check["max_relative_error"].toDouble() > check["within"].toDouble(-1))
        return "gradients are off: " + QString::fromUtf8(QJsonDocument(check).toJson());
    if (ran.json["peak_bytes"] != ran.json["predicted_peak_bytes"]
        || ran.json["allocated_bytes"] != ran.json["predicted_allocated_bytes"])
        return "memory is not as predicted: " + ran.output;
    if (ran.json["dropped_records"].toInt(-1) != 0)
        return "records were dropped";
    return ran.faults();
}

} // namespace pipewright::test
