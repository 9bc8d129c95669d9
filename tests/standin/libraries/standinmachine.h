// SPDX-License-Identifier: GPL-3.0-or-later
// Runs the real program on stand-in GPUs and reads their reports. The bundle's program finds its plugin in its own
// folder, and NVIDIA's libraries in the loader's path, as on a machine with a GPU.
#pragma once

#include "standin/libraries/standinreport.h"
#include "testpaths.h"

#include <QDir>
#include <QFile>
#include <QProcess>
#include <QProcessEnvironment>
#include <QTemporaryDir>

#include <initializer_list>
#include <map>
#include <utility>

namespace pipewright::test {

/// The outcome of a run of the program, with the report of each of its processes.
struct StandInOutcome : StandInReports {
    int code = -1; ///< -1: it crashed or did not end
    QString output, errors;
    QJsonObject json;
};

class StandInMachine {
public:
    explicit StandInMachine(int gpus = 1) { set("GPUS", QString::number(gpus)); }

    StandInMachine& set(const QString& setting, const QString& value)
    {
        m_settings["PIPEWRIGHT_STANDIN_" + setting] = value;
        return *this;
    }
    /// Runs a command line, in a folder that exists as long as this object.
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
        process.start(QString(STANDIN_BUNDLE) + "/bin/pipewright", QProcess::splitCommand(words) + ownText(words));
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
    /// deepModel(): a narrower byte-gpt-small with a layer for each of eight stages. wideModel(): one as wide as a
    /// small real model.
    bool deepModel(const QString& name) const { return tinyModel(name, "byte-gpt-small", 8); }
    bool wideModel(const QString& name) const
    {
        return model(name, "byte-gpt-small", {{"layers", 2}, {"hidden", 256}, {"heads", 4}, {"ffn", 1024}});
    }
    /// The preset with the smallest widths.
    bool tinyModel(const QString& name, const QString& like, int layers) const
    {
        return model(name, like,
                     {{"layers", layers},
                      {"hidden", 16},
                      {"heads", 2},
                      {"ffn", 32},
                      {"key_value_heads", 1},
                      {"head_size", 8},
                      {"features", 300}});
    }
    /// The same model in bf16: a file.
    QString inBf16(const QString& model) const
    {
        QFile from(model), to(path("bf16.json"));
        if (from.open(QIODevice::ReadOnly) && to.open(QIODevice::WriteOnly))
            to.write(from.readAll().replace("\"fp32\"", "\"bf16\""));
        return to.fileName();
    }
    QString path(const QString& name) const { return m_folder.filePath(name); }

private:
    /// The --data of text models. The default data, the sources, may change between two runs that are compared.
    QStringList ownText(const QString& words) const
    {
        QFile design(path("design.json")), text(path("text"));
        if (!words.startsWith("run design.json") || words.contains("--data") || !design.open(QIODevice::ReadOnly))
            return {};
        const QJsonObject model = QJsonDocument::fromJson(design.readAll()).object()["model"].toObject();
        const QString architecture = model["architecture"].toString("decoder");
        if (model.isEmpty() || (architecture != "decoder" && architecture != "encoder"))
            return {};
        if (!text.exists() && text.open(QIODevice::WriteOnly))
            for (int line = 0; line < 400; ++line)
                text.write(
                    QString("%1 blocks wait for %2, and %3 pass\n").arg(line).arg(line * 7).arg(line * line).toUtf8());
        return {"--data", text.fileName()};
    }
    /// A preset with other values for those of these sizes that it has.
    bool model(const QString& name, const QString& like, std::initializer_list<std::pair<const char*, int>> sizes) const
    {
        QFile from(QString(PIPEWRIGHT_SOURCE_DIR "/resources/models/%1.json").arg(like)), to(path(name));
        if (!from.open(QIODevice::ReadOnly) || !to.open(QIODevice::WriteOnly))
            return false;
        QJsonObject made = QJsonDocument::fromJson(from.readAll()).object();
        for (const auto& [size, value] : sizes)
            if (made.contains(size))
                made[size] = value;
        return to.write(QJsonDocument(made).toJson()) > 0;
    }

    QTemporaryDir m_folder;
    std::map<QString, QString> m_settings;
};

inline const QString onGpus = "run design.json --backend cuda --json --progress none --force -o trace.db --steps ";

/// Why a run with a gradient check is wrong; empty: it is right.
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
