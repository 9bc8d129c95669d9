// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/run/runprocess.h"

#include "core/json/jsonvalue.h"
#include "gui/widgets/words.h"

#include <QRegularExpression>

#include <algorithm>
#include <limits>

namespace pipewright {

namespace {

constexpr int longestMessageList = 200;

/// The last error that the program wrote, in a window's words: "device 0: cannot allocate 73.5 GiB (…)".
QString lastError(const QStringList& messages)
{
    static const QRegularExpression error(QStringLiteral("(^|: )error: "));
    const auto at = std::find_if(messages.rbegin(), messages.rend(),
                                 [](const QString& message) { return message.contains(error); });
    return at == messages.rend() ? QString() : proseText(QString(*at).replace(error, QStringLiteral("\\1")));
}

} // namespace

QStringList ChildRequest::arguments() const
{
    QStringList words{QStringLiteral("run"),       design,
                      QStringLiteral("--backend"), backend,
                      QStringLiteral("--steps"),   QString::number(steps),
                      QStringLiteral("-o"),        trace,
                      QStringLiteral("--json"),    QStringLiteral("--progress"),
                      QStringLiteral("json")};
    if (!data.isEmpty())
        words << QStringLiteral("--data") << data;
    if (!transport.isEmpty())
        words << QStringLiteral("--transport") << transport;
    return words + more;
}

RunProcess::RunProcess(QObject* parent) : QObject(parent)
{
    connect(&m_child, &ChildProcess::line, this, &RunProcess::takeLine);
    connect(&m_child, &ChildProcess::ended, this, &RunProcess::end);
}

void RunProcess::start(const ChildRequest& request)
{
    m_request = request;
    m_messages.clear();
    m_clock.start();
    m_child.start(request.program, request.arguments());
}

std::optional<ChildProgress> RunProcess::parseProgress(const QByteArray& line)
{
    const JsonValue json = JsonValue::fromText(line.toStdString());
    if (!json.contains("progress"))
        return std::nullopt;
    // {"progress": 0.35, "step": 7, …} and {"progress": {"step": 7, "steps": 20, …}} are both progress.
    const JsonValue& inner = json.member("progress").isObject() ? json.member("progress") : json;
    ChildProgress progress;
    progress.step = static_cast<int>(inner.member("step").integer().value_or(-1));
    progress.steps = static_cast<int>(inner.member("steps").integer().value_or(-1));
    progress.loss = inner.member("loss").number();
    progress.stepTime = inner.member("step_ns").number();
    if (const auto share = inner.member("progress").number())
        progress.share = *share;
    else if (const auto fraction = inner.member("fraction").number())
        progress.share = *fraction;
    else if (progress.steps > 0 && progress.step >= 0)
        progress.share = double(progress.step) / progress.steps;
    if (const auto left = inner.member("eta_ns").number())
        progress.secondsLeft = *left / 1e9;
    progress.share = std::clamp(progress.share, 0.0, 1.0);
    return progress;
}

void RunProcess::takeLine(const QByteArray& line)
{
    if (auto progress = parseProgress(line)) {
        const double seconds = static_cast<double>(m_clock.elapsed()) / 1000;
        // Without the run's own estimate, extrapolate the elapsed time.
        if (progress->secondsLeft < 0 && progress->share > 0.01)
            progress->secondsLeft = seconds / progress->share * (1 - progress->share);
        Q_EMIT progressed(*progress);
        return;
    }
    const QString text = QString::fromUtf8(line);
    if (m_messages.size() < longestMessageList)
        m_messages << text;
    Q_EMIT message(text);
}

void RunProcess::end(const ChildEnd& child)
{
    ChildResult result;
    result.json = child.output;
    result.trace = m_request.trace;
    result.messages = m_messages;
    const JsonValue report = JsonValue::fromText(result.json.toStdString());
    if (child.kind == ChildEnd::NotStarted) {
        result.reason = tr("The run could not be started: %1").arg(child.whyNot);
    } else if (child.cancelled) {
        result.kind = ChildResult::Cancelled;
    } else if (child.kind == ChildEnd::Crashed) {
        result.reason = tr("The run ended unexpectedly (signal %1). The designer is not affected.").arg(child.code);
    } else if (!report.isObject()) {
        const QString error = lastError(m_messages);
        result.reason = child.code == 0   ? tr("The run ended without a report.")
                        : error.isEmpty() ? tr("The run failed (exit code %1).").arg(child.code)
                                          : tr("The run failed: %1").arg(error);
    } else {
        // Exit code 1 with a report is a finding, such as differing gradients; the trace is valid.
        result.kind = ChildResult::Done;
        if (const auto fault = report.member("trace_fault").text()) {
            result.kind = ChildResult::Failed;
            result.reason = tr("The run ended, but not all of it was recorded: %1").arg(QString::fromStdString(*fault));
        }
        if (const JsonValue& check = report.member("gradient_check"); check.isObject()) {
            const auto bitEqual = check.member("bit_equal").boolean();
            result.gradientsChecked = bitEqual.has_value();
            result.bitEqual = bitEqual.value_or(false);
            result.maxRelativeError =
                check.member("max_relative_error").number().value_or(std::numeric_limits<double>::infinity());
            result.gradientsHold =
                result.bitEqual || result.maxRelativeError <= check.member("within").number().value_or(-1);
        }
        if (const auto trace = report.member("trace").text())
            result.trace = QString::fromStdString(*trace);
    }
    Q_EMIT finished(result);
}

} // namespace pipewright

#include "moc_runprocess.cpp"
