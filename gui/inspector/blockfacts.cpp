// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/inspector/blockfacts.h"

#include "core/base/beyondprediction.h"
#include "core/predict/criticalpath.h"
#include "gui/widgets/timetext.h"
#include "gui/widgets/words.h"

#include <QCoreApplication>

namespace pipewright {
namespace {

QString factWords(const char* text)
{
    return QCoreApplication::translate("Inspector", text);
}

constexpr double notable = 0.05; // errors and launch-bound shares beyond this are red

} // namespace

std::vector<Fact> blockFacts(const Document& document, const BlockAnswers& answers)
{
    const Prediction& prediction = *document.prediction();
    const Document::Overlay* const overlay = document.overlay();
    const Side side = document.side();
    const QString costs = QString::fromStdString(document.design().costs.source);
    const TaskId task = answers.task;
    const bool recorded = overlay && task < overlay->measured.start.size() && overlay->measured.start[task] != notRun;
    const Nanoseconds start = recorded ? overlay->measured.start[task] : 0;
    const Nanoseconds duration = recorded ? overlay->measured.end[task] - start : 0;

    QString source = factWords("Predicted from costs: %1").arg(costs);
    if (overlay && side != Side::Predicted)
        source = factWords("%1\nMeasured in %2").arg(source, overlay->path);
    const double resolution = static_cast<double>(answers.duration) / 100; // so that start and end differ in the text
    std::vector<Fact> facts;
    facts.push_back(
        {factWords("start"),
         sidedText(side, timeText(answers.start, resolution), recorded ? timeText(start, resolution) : QString()),
         source, Tone::Plain});
    facts.push_back({factWords("duration"),
                     sidedDurations(side, answers.duration, recorded ? std::optional(duration) : std::nullopt), source,
                     Tone::Plain});
    if (recorded && side == Side::Both) {
        const double error = beyondPrediction(static_cast<double>(duration), static_cast<double>(answers.duration));
        facts.push_back({factWords("its difference"), signedPercent(error),
                         factWords("Duration measured less predicted, as a share of the predicted"),
                         error > notable ? Tone::Bad : Tone::Plain});
    }
    const BlockKernels* const kernels =
        recorded && side != Side::Predicted && overlay->kernels && overlay->kernels->ofGpus()
            ? &overlay->kernels->blocks[task]
            : nullptr;
    if (kernels && !kernels->kernels.empty()) {
        const QString off = signedPercent(double(kernels->byKernels) / double(kernels->byEvents) - 1);
        facts.push_back({factWords("by its kernels, measured"),
                         QStringLiteral("%1  %2").arg(durationText(kernels->byKernels), off),
                         factWords("From its first kernel's start to its last one's end, as CUPTI saw them; the "
                                   "share is of the time between its events, %1")
                             .arg(durationText(kernels->byEvents)),
                         Tone::Plain});
        facts.push_back(
            {factWords("launch-bound, measured"),
             percentText(kernels->launchBound()) + (kernels->launchesKnown ? QString() : factWords(" or more")),
             factWords("Of the block: its GPU had nothing of it to do, since the host had not launched the "
                       "next kernel"),
             kernels->launchBound() > notable ? Tone::Bad : Tone::Plain});
    }
    const auto ofPrediction = [side](const QString& name) {
        return side == Side::Predicted ? name : factWords("%1, predicted").arg(name);
    };
    const Nanoseconds spare = slack(prediction.program, prediction.timeline)[task];
    facts.push_back({ofPrediction(factWords("slack")), spare == 0 ? factWords("0 critical") : durationText(spare),
                     factWords("How much later it could end without a later makespan"), Tone::Plain});
    const std::size_t feeds = std::min<std::size_t>(answers.feeds.size(), 2);
    Bytes largest = std::max(answers.keptUntil ? answers.kept : 0, answers.freed); // gives the unit
    for (std::size_t i = 0; i < feeds; ++i)
        largest = std::max(largest, answers.feeds[i].bytes);
    if (answers.keptUntil)
        facts.push_back(
            {ofPrediction(factWords("keeps until %1").arg(blockText(*answers.keptUntil))),
             sizeAmong(answers.kept, largest),
             factWords("Bytes that it saves on its device for the backwards to come, until the last of them"),
             Tone::Plain});
    if (answers.freed > 0)
        facts.push_back({ofPrediction(factWords("frees")), sizeAmong(answers.freed, largest),
                         factWords("Bytes released on its device right after it"), Tone::Plain});
    const Task& of = prediction.program.tasks[task];
    if (makesInputGrad(of.op) && document.design().schedule.recomputeOf(of.stage).insideBackward())
        facts.push_back({ofPrediction(factWords("recomputes")),
                         durationText(document.design().costs.stages[static_cast<std::size_t>(of.stage)].recompute),
                         factWords("So much of it makes activations again, layer by layer, which its forward did not "
                                   "keep"),
                         Tone::Plain});
    for (std::size_t i = 0; i < feeds; ++i) {
        const Feed& feed = answers.feeds[i];
        facts.push_back(
            {i == 0 ? factWords("sends to") : factWords("and to"),
             QStringLiteral("%1, %2").arg(deviceLabel(document.design(), feed.device), sizeAmong(feed.bytes, largest)),
             factWords("Transfer inferred from the data it makes"), Tone::Plain});
    }
    facts.push_back(
        {ofPrediction(factWords("source")), costs, factWords("Where the durations and sizes come from"), Tone::Dim});
    return facts;
}

} // namespace pipewright
