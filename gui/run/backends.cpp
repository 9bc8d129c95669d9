// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/run/backends.h"

#include "executor/cuda/gpushares.h"

#include <nlohmann/json.hpp>

#include <QCoreApplication>
#include <QTimer>

namespace pipewright {

namespace {

constexpr int patienceMilliseconds = 20000; // a driver that is being loaded can take seconds

QString textOf(const nlohmann::ordered_json& entry, const char* key)
{
    const auto at = entry.find(key);
    return at != entry.end() && at->is_string() ? QString::fromStdString(at->get<std::string>()) : QString();
}

QString describe(const nlohmann::ordered_json& entry)
{
    QStringList words;
    if (const QString name = textOf(entry, "name"); !name.isEmpty())
        words << name;
    if (const auto threads = entry.find("threads"); threads != entry.end() && threads->is_number_integer())
        words << QCoreApplication::translate("RunDialog", "%1 threads").arg(threads->get<int>());
    if (const auto devices = entry.find("devices"); devices != entry.end() && devices->is_array()) {
        for (const auto& device : *devices)
            words << (device.is_string()   ? QString::fromStdString(device.get<std::string>())
                      : device.is_object() ? textOf(device, "name")
                                           : QString());
    }
    return words.join(QStringLiteral(", "));
}

std::vector<PipewrightCudaDevice> gpusOf(const nlohmann::ordered_json& entry)
{
    std::vector<PipewrightCudaDevice> gpus;
    const auto list = entry.find("gpus");
    if (list == entry.end() || !list->is_array())
        return gpus;
    for (const auto& each : *list) {
        PipewrightCudaDevice gpu{};
        if (const auto at = each.find("multiprocessors"); at != each.end() && at->is_number_integer())
            gpu.multiprocessors = at->get<int>();
        gpu.major = textOf(each, "compute_capability").section(QLatin1Char('.'), 0, 0).toInt();
        gpus.push_back(gpu);
    }
    return gpus;
}

} // namespace

BackendChoice forDesign(BackendChoice choice, const Design& design)
{
    if (!choice.available || choice.gpus.empty())
        return choice;
    QStringList reasons;
    for (const Diagnostic& why : whyNotPlaced(design.cluster.gpus, design.schedule.devices(), choice.gpus)) {
        reasons << QString::fromStdString(why.what + " (" + why.hint + ")");
        choice.available = choice.available && why.severity != Severity::Error;
    }
    if (!reasons.isEmpty())
        choice.description = reasons.join(QStringLiteral("; "));
    return choice;
}

std::vector<BackendChoice> parseBackends(const QByteArray& text)
{
    std::vector<BackendChoice> choices;
    const auto json = nlohmann::ordered_json::parse(text.begin(), text.end(), nullptr, false);
    if (json.is_object()) {
        for (const auto& [name, entry] : json.items()) {
            if (!entry.is_object() || !entry.contains("available") || !entry["available"].is_boolean())
                continue;
            const bool available = entry["available"].get<bool>();
            choices.push_back({QString::fromStdString(name), available,
                               available ? describe(entry) : textOf(entry, "reason"), gpusOf(entry)});
        }
    }
    if (choices.empty())
        choices.push_back(
            {QStringLiteral("host"), true, QCoreApplication::translate("RunDialog", "CPU threads of this machine")});
    return choices;
}

BackendQuery::BackendQuery(QObject* parent) : QObject(parent)
{
    connect(&m_process, &QProcess::finished, this,
            [this] { Q_EMIT ready(parseBackends(m_process.readAllStandardOutput())); });
    connect(&m_process, &QProcess::errorOccurred, this, [this](QProcess::ProcessError error) {
        if (error == QProcess::FailedToStart)
            Q_EMIT ready(parseBackends({}));
    });
}

BackendQuery::~BackendQuery()
{
    m_process.disconnect(this);
    if (m_process.state() != QProcess::NotRunning) {
        m_process.kill();
        m_process.waitForFinished(1000);
    }
}

void BackendQuery::start(const QString& program)
{
    m_process.start(program.isEmpty() ? QCoreApplication::applicationFilePath() : program,
                    {QStringLiteral("devices"), QStringLiteral("--json")});
    m_process.closeWriteChannel();
    QTimer::singleShot(patienceMilliseconds, &m_process, &QProcess::kill);
}

} // namespace pipewright

#include "moc_backends.cpp"
