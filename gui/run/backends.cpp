// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/run/backends.h"

#include "core/base/diagnostic.h"
#include "core/json/jsontext.h"
#include "executor/cuda/gpushares.h"
#include "executor/torch/python.h"

#include <nlohmann/json.hpp>

#include <QCoreApplication>
#include <QTimer>

#include <algorithm>
#include <utility>

namespace pipewright {

namespace {

constexpr int patienceMilliseconds = 20000; // loading a driver can take seconds

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
        words << QCoreApplication::translate("RunSettings", "%1 threads").arg(threads->get<int>());
    QStringList names;
    if (const auto gpus = entry.find("gpus"); gpus != entry.end() && gpus->is_array())
        for (const auto& gpu : *gpus)
            names << (gpu.is_object() ? textOf(gpu, "name") : QString());
    for (int first = 0; first < names.size(); ++first)
        if (names.indexOf(names[first]) == first) {
            const auto same = names.count(names[first]);
            words << (same > 1 ? QStringLiteral("%1 × %2").arg(same).arg(names[first]) : names[first]);
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
        if (const auto at = each.find("memory_bytes"); at != each.end() && at->is_number_integer())
            gpu.memory = at->get<std::int64_t>();
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
    const auto json = tryOrderedJsonFromText(text.toStdString());
    if (json.is_object()) {
        for (const auto& [name, entry] : json.items()) {
            if (!entry.is_object() || !entry.contains("available") || !entry["available"].is_boolean())
                continue;
            if (name == "torch") // comes from the Python chosen in the settings, see torchBackend()
                continue;
            const bool available = entry["available"].get<bool>();
            const auto memory = entry.find("memory_bytes");
            choices.push_back({QString::fromStdString(name), available,
                               available ? describe(entry) : textOf(entry, "reason"), gpusOf(entry),
                               memory != entry.end() && memory->is_number_integer() ? memory->get<Bytes>() : 0});
        }
    }
    if (choices.empty())
        choices.push_back(
            {QStringLiteral("host"), true, QCoreApplication::translate("RunSettings", "CPU threads of this machine")});
    return choices;
}

BackendChoice torchBackend(const QString& python, bool started, int exitCode, const QByteArray& output)
{
    const auto say = [](const char* text) { return QCoreApplication::translate("RunSettings", text); };
    BackendChoice torch{QStringLiteral("torch"), started && exitCode == 0, {}};
    if (torch.available)
        torch.description = say("PyTorch %1 of %2").arg(QString::fromUtf8(output.trimmed()), python);
    else if (started)
        torch.description = say("%1 has no PyTorch (pip install torch, or name another Python)").arg(python);
    else
        torch.description = say("there is no program %1 (name the Python that has PyTorch)").arg(python);
    return torch;
}

MachineMemory machineMemory(const std::vector<BackendChoice>& backends)
{
    MachineMemory memory;
    for (const BackendChoice& backend : backends) {
        memory.host = std::max(memory.host, backend.memory);
        if (!backend.gpus.empty())
            memory.gpus = backend.gpus;
    }
    return memory;
}

BackendQuery::BackendQuery(QObject* parent) : QObject(parent)
{
    const auto take = [this](const QByteArray& output) {
        m_backends = parseBackends(output);
        tell();
    };
    connect(&m_process, &QProcess::finished, this, [this, take] { take(m_process.readAllStandardOutput()); });
    connect(&m_process, &QProcess::errorOccurred, this, [take](QProcess::ProcessError error) {
        if (error == QProcess::FailedToStart)
            take({});
    });
    const auto takePython = [this](bool started, int code) {
        if (std::exchange(m_isOutdated, false))
            return askPython(m_pythonName);
        m_torch = torchBackend(m_pythonName, started, code, m_python.readAllStandardOutput());
        tell();
    };
    connect(&m_python, &QProcess::finished, this, [takePython](int code, QProcess::ExitStatus status) {
        takePython(true, status == QProcess::NormalExit ? code : 1);
    });
    connect(&m_python, &QProcess::errorOccurred, this, [takePython](QProcess::ProcessError error) {
        if (error == QProcess::FailedToStart)
            takePython(false, 1);
    });
    m_patience.setSingleShot(true);
    m_patience.setInterval(patienceMilliseconds);
    connect(&m_patience, &QTimer::timeout, &m_python, &QProcess::kill);
}

BackendQuery::~BackendQuery()
{
    for (QProcess* process : {&m_process, &m_python}) {
        process->disconnect(this);
        if (process->state() != QProcess::NotRunning) {
            process->kill();
            process->waitForFinished(1000);
        }
    }
}

void BackendQuery::start(const QString& program, const QString& python)
{
    if (!python.isEmpty())
        askPython(python);
    if (!m_backends.empty() || m_process.state() != QProcess::NotRunning)
        return;
    m_process.start(program.isEmpty() ? QCoreApplication::applicationFilePath() : program,
                    {QStringLiteral("devices"), QStringLiteral("--json")});
    m_process.closeWriteChannel();
    QTimer::singleShot(patienceMilliseconds, &m_process, &QProcess::kill);
}

void BackendQuery::askPython(const QString& python)
{
    const bool isAsked = m_python.state() != QProcess::NotRunning, isSame = python == m_pythonName;
    m_pythonName = python;
    m_torch.reset();
    if (isAsked && !isSame && !m_isOutdated) {
        m_isOutdated = true; // the handler of its end queries the new one
        m_python.kill();
    }
    if (isAsked)
        return;
    try {
        // Read the version without importing torch, which takes seconds.
        const ProcessToStart wanted =
            pythonCode(python.toStdString(), "import importlib.metadata as m\nprint(m.version('torch'))");
        QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
        for (const auto& [name, value] : wanted.environment)
            environment.insert(QString::fromStdString(name), QString::fromStdString(value));
        m_python.setProcessEnvironment(environment);
        QStringList words;
        for (const std::string& word : wanted.words)
            words << QString::fromStdString(word);
        m_python.start(words.takeFirst(), words);
        m_python.closeWriteChannel();
        m_patience.start();
    } catch (const Error& error) {
        const Diagnostic& why = error.diagnostics().front();
        m_torch = BackendChoice{QStringLiteral("torch"), false,
                                QString::fromStdString(why.what + (why.hint.empty() ? "" : " (" + why.hint + ")"))};
        tell();
    }
}

void BackendQuery::tell()
{
    if (m_backends.empty() || (!m_torch && !m_pythonName.isEmpty()))
        return;
    std::vector<BackendChoice> all = m_backends;
    if (m_torch)
        all.push_back(*m_torch);
    Q_EMIT ready(all);
}

} // namespace pipewright

#include "moc_backends.cpp"
