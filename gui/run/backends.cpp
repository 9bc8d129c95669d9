// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/run/backends.h"

#include "core/base/diagnostic.h"
#include "core/json/jsonvalue.h"
#include "executor/cuda/gpushares.h"
#include "executor/torch/python.h"

#include <QCoreApplication>
#include <QTimer>

#include <algorithm>
#include <utility>

namespace pipewright {

namespace {

constexpr int patienceMilliseconds = 20000; // loading a driver can take seconds

QString textOf(const JsonValue& entry, const char* key)
{
    return QString::fromStdString(entry.member(key).text().value_or(std::string()));
}

QString describe(const JsonValue& entry)
{
    QStringList words;
    if (const QString name = textOf(entry, "name"); !name.isEmpty())
        words << name;
    if (const auto threads = entry.member("threads").integer())
        words << QCoreApplication::translate("RunSettings", "%1 threads").arg(*threads);
    QStringList names;
    for (const JsonValue& gpu : entry.member("gpus").elements())
        names << textOf(gpu, "name");
    for (int first = 0; first < names.size(); ++first)
        if (names.indexOf(names[first]) == first) {
            const auto same = names.count(names[first]);
            words << (same > 1 ? QStringLiteral("%1 × %2").arg(same).arg(names[first]) : names[first]);
        }
    return words.join(QStringLiteral(", "));
}

std::vector<PipewrightCudaDevice> gpusOf(const JsonValue& entry)
{
    std::vector<PipewrightCudaDevice> gpus;
    for (const JsonValue& each : entry.member("gpus").elements()) {
        PipewrightCudaDevice gpu{};
        gpu.multiprocessors = static_cast<int>(each.member("multiprocessors").integer().value_or(0));
        gpu.memory = each.member("memory_bytes").integer().value_or(0);
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
    const JsonValue json = JsonValue::fromText(text.toStdString());
    for (const auto& [name, entry] : json.members()) {
        const auto available = entry.member("available").boolean();
        if (!available || name == "torch") // comes from the Python chosen in the settings, see torchBackend()
            continue;
        choices.push_back({QString::fromStdString(name), *available,
                           *available ? describe(entry) : textOf(entry, "reason"), gpusOf(entry),
                           entry.member("memory_bytes").integer().value_or(0)});
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
