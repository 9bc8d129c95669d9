// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/inspector/measuredexplanation.h"

#include "core/base/beyondprediction.h"
#include "gui/inspector/blockexplanation.h"
#include "gui/widgets/words.h"
#include "traces/analysis/gapreasons.h"

#include <QCoreApplication>
#include <QStringList>

#include <algorithm>

namespace pipewright {
namespace {

QString measuredWords(const char* text)
{
    return QCoreApplication::translate("Inspector", text);
}

/// Why the awaited block was late itself, as a clause behind its name.
QString whyLate(const GapReasons& reasons, Nanoseconds predictedDuration)
{
    if (reasons.producerLonger > 0)
        return measuredWords(", which took %1 of its predicted %2")
            .arg(signedPercent(beyondPrediction(static_cast<double>(predictedDuration + reasons.producerLonger),
                                                static_cast<double>(predictedDuration))),
                 durationText(predictedDuration));
    switch (reasons.producerWhy) {
    case BlockDifference::Why::DeviceBusy: return measuredWords(", which began late since its device was busy");
    case BlockDifference::Why::LateData: return measuredWords(", which began late since its own input was late");
    case BlockDifference::Why::Transfer: return measuredWords(", which began late since its input was on its way");
    case BlockDifference::Why::HostGap: return measuredWords(", which its host began late");
    case BlockDifference::Why::MemoryWait: return measuredWords(", which waited for memory");
    case BlockDifference::Why::OnTime: break;
    }
    return {};
}

/// The part of the wait in which another slice of the same GPU was working; 0 where no kernels were recorded.
Nanoseconds takenByOthers(const Document::Overlay& overlay, TaskId task)
{
    if (!overlay.kernels)
        return 0;
    for (const GpuGaps& gaps : overlay.kernels->gaps)
        for (const GpuGaps::Shared& shared : gaps.shared)
            if (shared.task == task)
                return shared.time;
    return 0;
}

} // namespace

Nanoseconds measuredIdleBefore(const Prediction& prediction, const Document::Overlay& overlay, TaskId task)
{
    const IdleGap* gap = gapBefore(overlay.explanation, prediction.program.tasks[task].device, task);
    return gap ? gap->end - gap->start : 0;
}

QString measuredWhy(const Design& design, const Prediction& prediction, const Document::Overlay& overlay, TaskId task)
{
    const Program& program = prediction.program;
    const auto nameOf = [&](TaskId t) {
        return measuredWords("%1 on %2")
            .arg(QString::fromStdString(program.label(t)), deviceLabel(design, program.tasks[t].device));
    };
    const Timeline& measured = overlay.measured;
    if (task >= measured.start.size() || measured.start[task] == notRun)
        return measuredWords("The recording has no times of it.");
    const IdleGap* gap = gapBefore(overlay.explanation, program.tasks[task].device, task);
    if (!gap) {
        const TaskId before = program.afterOnDevice[task];
        return before == none ? measuredWords("It started with the step; nothing was idle before it.")
                              : measuredWords("Nothing was idle: it started as soon as %1 ended.")
                                    .arg(QString::fromStdString(program.label(before)));
    }
    const GapReasons reasons = reasonsOf(program, prediction.timeline, overlay.explanation, *gap);
    struct Part {
        Nanoseconds time;
        QString text;
    };
    std::vector<Part> parts;
    const auto add = [&parts](Nanoseconds time, const QString& words) {
        if (time > 0)
            parts.push_back({time, QStringLiteral("%1 %2").arg(durationText(time), words)});
    };
    if (reasons.producer != none) {
        const Nanoseconds predicted =
            prediction.timeline.end[reasons.producer] - prediction.timeline.start[reasons.producer];
        add(gap->lateData + gap->warmUp,
            measuredWords("waiting for %1%2").arg(nameOf(reasons.producer), whyLate(reasons, predicted)));
    } else {
        add(gap->lateData + gap->warmUp, measuredWords("waiting for its input"));
    }
    add(gap->transfer, reasons.linkBusy        ? measuredWords("for its transfer, whose link was busy with another")
                       : reasons.lateHost >= 0 ? measuredWords("for its transfer, which the host of %1 began late")
                                                     .arg(deviceLabel(design, reasons.lateHost))
                                               : measuredWords("for its transfer"));
    add(gap->hostGap, measuredWords("with all inputs there: the host was late"));
    add(gap->pinned, measuredWords("until its earliest start"));
    add(gap->notRecorded, measuredWords("with blocks of which the recording has no times"));
    add(gap->memoryWait, measuredWords("until a buffer that was being sent was free"));
    std::stable_sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) { return a.time > b.time; });
    QStringList words;
    for (const Part& part : parts)
        words << part.text;
    QString text =
        parts.size() == 1
            ? words.front() + QLatin1Char('.')
            : measuredWords("%1 idle: %2.").arg(durationText(gap->end - gap->start), words.join(QStringLiteral("; ")));
    if (const Nanoseconds others = takenByOthers(overlay, task); others > 0)
        text += measuredWords(" For %1 of it another slice of the same GPU was working.").arg(durationText(others));
    if (gap->lateData + gap->warmUp + gap->transfer == 0)
        return text; // it waited for no block
    return text + chainBehind(design, program, overlay.explanation.completed, program.tasks[task].block(), true);
}

} // namespace pipewright
