// SPDX-License-Identifier: GPL-3.0-or-later
#include "traces/export/report.h"

#include "core/base/beyondprediction.h"
#include "core/cluster/devicename.h"
#include "core/exchange/timelinepicture.h"
#include "traces/analysis/achievedrates.h"
#include "traces/analysis/activitysummary.h"
#include "traces/analysis/blockkernels.h"
#include "traces/analysis/causetext.h"
#include "traces/analysis/comparison.h"
#include "traces/analysis/durationdifference.h"
#include "traces/analysis/explanation.h"
#include "traces/analysis/gpugaps.h"
#include "traces/analysis/stepvariation.h"
#include "traces/export/activitypicture.h"
#include "traces/export/htmlpage.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>

namespace pipewright {

namespace {

constexpr std::size_t causesShown = 12, blocksShown = 20, namesShown = 25;

std::string signedDuration(Nanoseconds value)
{
    return (value < 0 ? "-" : "+") + formatDuration(std::abs(value));
}

std::string share(double part)
{
    return fmt::format("{:.1f} %", 100 * part);
}

/// Measured minus predicted, as a share of the predicted value.
std::string signedShare(double part)
{
    return (part < 0 ? "" : "+") + share(part);
}

std::string sentence(std::string text)
{
    if (!text.empty())
        text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
    return text + ".";
}

std::string fileName(const std::string& path)
{
    return std::filesystem::path(path).filename().string();
}

void addNotes(HtmlPage& page, const std::vector<TraceNote>& notes)
{
    if (notes.empty())
        return;
    page.heading("Notes");
    std::vector<std::vector<std::string>> rows;
    for (const TraceNote& note : notes)
        rows.push_back({note.text, note.step < 0 ? "" : std::to_string(note.step), formatDuration(note.start),
                        formatDuration(note.end - note.start)});
    page.table({"note", "step", "from", "for"}, rows);
}

void addRates(HtmlPage& page, const Cluster& cluster, const std::vector<AchievedRate>& rates)
{
    if (rates.empty())
        return;
    page.heading("Achieved, against the ceilings");
    std::vector<std::vector<std::string>> rows;
    for (const AchievedRate& rate : rates)
        rows.push_back({nameOf(rate, cluster), std::to_string(rate.count), rateText(rate.rate(), rate.flops),
                        rateText(rate.best, rate.flops),
                        rate.ceiling > 0 ? rateText(rate.ceiling, rate.flops) : "not known", share(rate.share())});
    page.table({"", "count", "rate", "best", "ceiling", "of the ceiling, or the best"}, rows);
    if (const std::string beyond = beyondCeilings(rates); !beyond.empty())
        page.paragraph(beyond);
}

/// With the device names that the screen and pictures use.
std::string named(const Cause& cause, const Design& design)
{
    return shortText(cause, [&](int device) { return deviceName(design.cluster, device); });
}

void addReason(HtmlPage& page, const Design& design, const Explanation& e)
{
    const auto cause =
        std::find_if(e.causes.begin(), e.causes.end(), [](const Cause& c) { return c.contribution != 0; });
    if (cause == e.causes.end())
        page.paragraph("The step ran as predicted.", true);
    else
        page.paragraph(sentence(fmt::format("{} from the prediction; most of it by {} ({})",
                                            signedDuration(e.measured - e.predicted), named(*cause, design),
                                            signedDuration(cause->contribution))),
                       true);
    if (e.straggler >= 0)
        page.paragraph(fmt::format("The slowest is {}: its blocks take {:.2f} times what the median device's do.",
                                   deviceName(design.cluster, e.straggler), e.devices[e.straggler].slowness));
}

void addCauses(HtmlPage& page, const Design& design, const Program& program, const Explanation& e)
{
    page.heading("What the difference comes from");
    std::vector<std::vector<std::string>> rows;
    for (const Cause& cause : e.causes)
        if (rows.size() < causesShown && cause.contribution != 0)
            rows.push_back({named(cause, design), signedDuration(cause.contribution), signedDuration(cause.excess),
                            std::to_string(cause.tasks.size()),
                            cause.tasks.empty() ? "" : program.label(cause.tasks[0])});
    if (e.unexplained() != 0)
        rows.push_back({"unexplained", signedDuration(e.unexplained()), "", "", ""});
    page.table({"cause", "in the makespan", "in all tasks", "tasks", "largest"}, rows);
    page.paragraph(
        fmt::format("Each is what the step would gain with that cause alone put right; with all of them it takes {}.",
                    formatDuration(e.allRight)));
}

void addDevices(HtmlPage& page, const Design& design, const Explanation& e)
{
    page.heading("Where the devices' time went");
    std::vector<std::vector<std::string>> rows;
    for (std::size_t d = 0; d < e.devices.size(); ++d) {
        const DeviceExplanation& x = e.devices[d];
        rows.push_back({deviceName(design.cluster, static_cast<int>(d)), formatDuration(x.computing),
                        formatDuration(x.warmUp), formatDuration(x.lateData), formatDuration(x.transfer),
                        formatDuration(x.pinned), formatDuration(x.hostGap), formatDuration(x.memoryWait),
                        formatDuration(x.coolDown), formatDuration(x.notRecorded),
                        share(shareOf(x.overlapped, x.transferring)), fmt::format("{:.2f}x", x.slowness)});
    }
    page.table({"", "computing", "warm-up", "late data", "transfer", "pinned", "host gap", "memory wait", "cool-down",
                "not recorded", "transfers hidden", "slowness"},
               rows);
}

void addBlocks(HtmlPage& page, const Design& design, const Prediction& prediction, const Explanation& e,
               const Comparison& comparison)
{
    const Program& program = prediction.program;
    page.heading("Blocks furthest from their prediction");
    std::vector<const BlockDifference*> byTask(program.tasks.size(), nullptr);
    for (const BlockDifference& block : e.blocks)
        byTask[block.task] = &block;
    std::vector<std::vector<std::string>> rows;
    for (const Comparison::BlockError& block : comparison.blocks) {
        if (rows.size() == blocksShown)
            break;
        const BlockDifference* why = byTask[block.task];
        rows.push_back({program.label(block.task), deviceName(design.cluster, program.tasks[block.task].device),
                        signedDuration(block.contribution), signedShare(beyondPrediction(block, prediction.timeline)),
                        why ? signedDuration(why->start) : "", why ? std::string(nameOf(why->why)) : ""});
    }
    page.table({"block", "device", "longer by", "of the predicted", "starts later by", "because of"}, rows);
}

/// For a run whose kernels or operators were recorded.
void addKernels(HtmlPage& page, const Design& design, const Program& program, const TraceReader& trace, int step)
{
    const std::optional<KernelTotals> totals = kernelTotals(trace, program, step);
    if (!totals)
        return;
    const bool ofGpus = totals->kind == WorkKind::Kernels;
    page.heading(ofGpus ? "Kernels of the GPUs" : "Operators");
    page.paragraph(
        ofGpus ? fmt::format("{} blocks with kernels took {}; {} of their time was bound by launching. Recording took "
                             "{} of this step, which is part of what was measured.",
                             totals->blocks, blockTimesText(*totals),
                             share(shareOf(totals->launching, totals->byEvents)), formatDuration(totals->overhead))
               : fmt::format("{} blocks with operators took {}; operators ran for {} of their time.", totals->blocks,
                             blockTimesText(*totals), share(shareOf(totals->running, totals->byEvents))));
    std::vector<std::vector<std::string>> groups;
    for (const BlockKernels::Group& group : totals->groups)
        groups.push_back(
            {KernelGroups::standard().names()[group.group], std::to_string(group.kernels), formatDuration(group.time)});
    page.table({std::string(nameOf(totals->kind)), "count", "time"}, groups);
    if (!ofGpus)
        return;
    std::vector<std::vector<std::string>> rows;
    for (const GpuGaps& g : gpuGaps(program, trace.gpuWork(program, step), trace.timeline(program, step)))
        if (g.recorded)
            rows.push_back({deviceName(design.cluster, g.device), formatDuration(g.running), formatDuration(g.lateData),
                            formatDuration(g.link), formatDuration(g.host), formatDuration(g.otherSlice),
                            formatDuration(g.other), formatDuration(g.coolDown)});
    page.table({"GPU", "running", "late data", "link", "late host", "other slice", "other", "cool-down"}, rows);
}

} // namespace

std::string runReport(const Design& design, const Prediction& prediction, const TraceReader& trace,
                      const std::string& tracePath, const MeasuredStep& step, const std::vector<TraceNote>& notes)
{
    const Comparison comparison = compare(prediction.program, prediction.timeline, step.timeline, trace.peakBytes());
    const Explanation e = explain(prediction.program, design.costs, prediction.timeline, step.timeline,
                                  coreWaitIn(trace.steps(), step.number));
    const StepLengths lengths = stepLengths(trace.steps());
    HtmlPage page(design.name, fmt::format("{}, {}: measured against predicted", fileName(tracePath), step.name));
    addReason(page, design, e);
    for (const Diagnostic& doubt : trace.whatMayBeMissing())
        page.paragraph(fmt::format("{} ({}).", doubt.what, doubt.hint));
    if (comparison.unmatched > 0)
        page.paragraph(fmt::format("{} blocks were not recorded.", comparison.unmatched));
    page.table({"", "predicted", "measured", "of the predicted"},
               {{"makespan", formatDuration(comparison.predictedMakespan), formatDuration(comparison.measuredMakespan),
                 signedShare(beyondPrediction(static_cast<double>(comparison.measuredMakespan),
                                              static_cast<double>(comparison.predictedMakespan)))},
                {"block durations, median", "", "", signedShare(medianBeyond(comparison, prediction.timeline))}});
    page.paragraph(fmt::format("95 of 100 blocks start within {} of the measured makespan of when they were predicted.",
                               share(comparison.startError.p95)));
    if (lengths.steps > 1)
        page.paragraph(fmt::format("{} steps after the first: {} to {}, median {}, eight of ten within {}.",
                                   lengths.steps, formatDuration(lengths.shortest), formatDuration(lengths.longest),
                                   formatDuration(lengths.median), formatDuration(lengths.spread)));
    PicturePanel picture(design, prediction);
    picture.measured = &step.timeline;
    picture.measuredSource = fileName(tracePath) + ", " + step.name;
    page.picture(timelineSvg(picture), "The measured timeline, the predicted one as outlines");
    addNotes(page, notes);
    addCauses(page, design, prediction.program, e);
    addDevices(page, design, e);
    addKernels(page, design, prediction.program, trace, step.number >= 0 ? step.number : trace.medianStep());
    page.paragraph(
        fmt::format("Critical path of the measured step: {} computing, {} in transfers, {} waiting, over {} tasks.",
                    formatDuration(e.path.computing), formatDuration(e.path.transferring),
                    formatDuration(e.path.waiting), e.criticalPath.size()));
    addRates(page, design.cluster, achievedRates(workedDesign(trace, design), prediction.program, step.timeline));
    addBlocks(page, design, prediction, e, comparison);
    return std::move(page).finish();
}

std::string activityReport(const StoredActivities& trace, const std::string& store, const TraceStep& stretch,
                           const std::vector<TraceNote>& notes)
{
    const Nanoseconds from = stretch.start, end = stretch.end;
    const LaunchCalls launches(trace);
    const DeviceTimes times = deviceTimes(trace, launches, from, end);
    const std::string name = trace.source.empty() ? store : trace.source;
    HtmlPage page(fileName(name),
                  fmt::format("{}, {} slices, {} long; {}, from {} to {}", trace.tool, trace.slices(),
                              formatDuration(endOf(trace)), stretch.name, formatDuration(from), formatDuration(end)));
    page.paragraph(sentence(verdict(times)), true);
    page.picture(activitySvg(trace, from, end), "Streams of the trace over time");
    addNotes(page, notes);
    if (!times.devices.empty()) {
        page.heading("Where the devices' time went");
        page.picture(deviceTimeSvg(times), "One bar per device, by cause");
        std::vector<std::string> header{""};
        for (int cause = 0; cause < deviceTimeCauses; ++cause)
            header.emplace_back(nameOf(static_cast<DeviceTimeCause>(cause)));
        header.emplace_back("communication hidden");
        std::vector<std::vector<std::string>> rows;
        for (const DeviceTime& device : times.devices) {
            std::vector<std::string>& row = rows.emplace_back(std::vector{device.name});
            for (const Nanoseconds part : device.time)
                row.push_back(fmt::format("{} ({})", formatDuration(part), share(shareOf(part, end - from))));
            row.push_back(device.communicating > 0 ? share(device.overlap()) : "");
        }
        page.table(header, rows);
    }
    if (!times.links.empty()) {
        page.heading("Links, from when the last of those concerned has come");
        std::vector<std::vector<std::string>> rows;
        for (const LinkTime& link : times.links)
            rows.push_back({link.name, std::to_string(link.transfers), formatDuration(link.time / link.transfers),
                            fmt::format("{:.2f}", link.slowness()), formatDuration(link.excess),
                            formatDuration(link.waited)});
        page.table({"", "transfers", "each", "of the usual", "exposed beyond it", "waited for the last"}, rows);
    }
    if (const std::vector<TraceStep> steps = stepsOf(trace); !steps.empty()) {
        page.heading("Steps");
        std::vector<std::vector<std::string>> rows;
        for (const TraceStep& step : steps)
            rows.push_back({step.name, formatDuration(step.end - step.start),
                            sentence(verdict(deviceTimes(trace, launches, step.start, step.end)))});
        page.table({"step", "length", ""}, rows, false);
    }
    addRates(page, {}, achievedRates(store, from, end + 1));
    page.heading("Time by name");
    const ActivitySummary summary = summarise(trace, from, end);
    std::vector<std::vector<std::string>> rows;
    for (std::size_t i = 0; i < std::min(namesShown, summary.names.size()); ++i) {
        const NameSummary& entry = summary.names[i];
        rows.push_back({trace.strings[entry.name], std::string(nameOf(entry.kind)), std::to_string(entry.count),
                        formatDuration(entry.total), formatDuration(entry.longest)});
    }
    page.table({"name", "kind", "count", "total", "longest"}, rows);
    if (!trace.report.entries().empty()) {
        page.heading("What the import left out or repaired");
        std::vector<std::vector<std::string>> left;
        for (const auto& [reason, entry] : trace.report.entries())
            left.push_back({reason, std::to_string(entry.count),
                            entry.lost      ? "left out"
                            : entry.warning ? "warning"
                                            : "repaired",
                            entry.example});
        page.table({"reason", "count", "", "first"}, left, false);
    }
    return std::move(page).finish();
}

} // namespace pipewright
