// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/devicetimetext.h"

#include "app/recordingtext.h"
#include "app/table.h"
#include "app/terminal.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace pipewright::app {

namespace {

std::string keyOf(DeviceTimeCause cause)
{
    std::string key(nameOf(cause));
    std::replace(key.begin(), key.end(), ' ', '_');
    return key;
}

} // namespace

std::vector<DeviceTimeCause> causesOf(const DeviceTimes& times)
{
    std::vector<DeviceTimeCause> causes(std::begin(allCauses), std::end(allCauses));
    if (std::all_of(times.devices.begin(), times.devices.end(),
                    [](const DeviceTime& device) { return device.of(DeviceTimeCause::NotKnown) == 0; }))
        std::erase(causes, DeviceTimeCause::NotKnown);
    return causes;
}

Json toJson(const DeviceTimes& times)
{
    Json object{{"start_ns", times.from}, {"end_ns", times.to}, {"verdict", verdict(times)}};
    object["straggler"] = Json();
    if (times.straggler >= 0) {
        const DeviceTime& slow = times.devices[times.straggler];
        object["straggler"] = {{"rank", slow.rank},
                               {"device", slow.device},
                               {"slowness", times.slowness},
                               {"reason", nameOf(times.reason)},
                               {"excess_ns", times.excess}};
    }
    object["slow_link"] = Json();
    if (times.slowLink >= 0)
        object["slow_link"] = times.links[times.slowLink].name;
    object["links"] = Json::array();
    for (const LinkTime& link : times.links)
        object["links"].push_back({{"link", link.name},
                                   {"transfers", link.transfers},
                                   {"bytes", link.bytes},
                                   {"time_ns", link.time},
                                   {"usual_ns", link.usual},
                                   {"waited_ns", link.waited},
                                   {"excess_ns", link.excess}});
    object["per_device"] = Json::array();
    for (const DeviceTime& device : times.devices) {
        Json entry{{"rank", device.rank}, {"device", device.device}, {"slices", device.slices}};
        for (const DeviceTimeCause cause : allCauses)
            entry[keyOf(cause) + "_ns"] = device.of(cause);
        entry["communicating_ns"] = device.communicating;
        entry["communication_overlapped"] = device.overlap();
        entry["copying_ns"] = device.copying;
        object["per_device"].push_back(std::move(entry));
    }
    return object;
}

void print(const DeviceTimes& times)
{
    const Nanoseconds whole = times.to - times.from;
    const std::vector<DeviceTimeCause> causes = causesOf(times);
    std::vector<std::string> header{"device"};
    for (const DeviceTimeCause cause : causes)
        header.emplace_back(nameOf(cause));
    header.emplace_back("communication hidden");
    TextTable table(std::move(header));
    for (const DeviceTime& device : times.devices) {
        std::vector<std::string> cells{device.name};
        for (const DeviceTimeCause cause : causes)
            cells.push_back(fmt::format("{} {:>6}", formatDuration(device.of(cause)),
                                        fmt::format("{:.1f} %", 100 * shareOf(device.of(cause), whole))));
        cells.push_back(device.communicating > 0 ? percent(device.overlap()) : "-");
        table.addRow(std::move(cells));
    }
    table.print();
    if (!times.links.empty()) {
        // A transfer's own time begins when the last participant arrives.
        printText("\n");
        TextTable links({"moved", "transfers", "each", "of the usual", "exposed beyond it", "waited for the last"});
        for (const LinkTime& link : times.links)
            links.addRow({link.name, std::to_string(link.transfers), formatDuration(link.time / link.transfers),
                          fmt::format("{:.2f}", link.slowness()), formatDuration(link.excess),
                          formatDuration(link.waited)});
        links.print();
    }
    std::string sentence = verdict(times);
    sentence[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(sentence[0])));
    printText("\n{}.\n", sentence);
}

Json toJson(const std::vector<AchievedRate>& rates)
{
    Json array = Json::array();
    for (const AchievedRate& rate : rates) {
        Json entry{{"what", rate.what},    {"unit", rate.flops ? "FLOP/s" : "B/s"},
                   {"count", rate.count},  {"amount", rate.amount},
                   {"time_ns", rate.time}, {"rate", rate.rate()},
                   {"best", rate.best}};
        entry["ceiling"] = rate.ceiling > 0 ? Json(rate.ceiling) : Json();
        entry["share"] = rate.share();
        array.push_back(std::move(entry));
    }
    return array;
}

void print(const std::vector<AchievedRate>& rates, const Cluster& cluster)
{
    if (rates.empty())
        return;
    printText("\n");
    TextTable table({"achieved", "count", "rate", "best", "ceiling", "share"});
    for (const AchievedRate& rate : rates)
        table.addRow({nameOf(rate, cluster), std::to_string(rate.count), rateText(rate.rate(), rate.flops),
                      rateText(rate.best, rate.flops),
                      rate.ceiling > 0 ? rateText(rate.ceiling, rate.flops) : "of the best", percent(rate.share())});
    table.print();
    if (const std::string beyond = beyondCeilings(rates); !beyond.empty())
        printText("{}\n", beyond);
}

namespace {

/// What the import warned of, since it changes what the totals mean.
Diagnostics warningsOf(const StoredActivities& trace, const std::string& path)
{
    Diagnostics warnings;
    for (const auto& [what, entry] : trace.report.entries())
        if (entry.warning)
            warnings.push_back({Severity::Warning, path, what, entry.example});
    return warnings;
}

} // namespace

void explainActivities(const std::string& path, int step, const StretchChoice& choice, std::size_t names, bool json)
{
    const StoredActivities trace = readActivities(path);
    const std::vector<TraceStep> steps = stepsOf(trace);
    const TraceStep stretch = choice.of(trace, path, step);
    const LaunchCalls launches(trace);
    const DeviceTimes times = deviceTimes(trace, launches, stretch.start, stretch.end);
    const Diagnostics warnings = warningsOf(trace, path);
    printDiagnostics(warnings);
    if (times.devices.empty())
        throw Error(path, "it holds no design, no kernels or copies of a device, and no operators",
                    "name the design of its blocks with --design, or record the device as well");
    const std::vector<AchievedRate> rates = achievedRates(path, stretch.start, stretch.end);
    const KernelTable kernels = kernelTable(trace, stretch.start, stretch.end);
    const std::vector<LaunchQueue> queues = launchQueues(trace, launches, stretch.start, stretch.end);
    const std::vector<CounterPeak> memory = memoryPeaks(trace, stretch.start, stretch.end);
    const std::vector<RangeTime> ranges = rangeTimes(trace, stretch.start, stretch.end);
    if (json) {
        Json object{{"trace", path}, {"tool", trace.tool}, {"stretch", stretch.name}};
        object.update(toJson(times));
        object["steps"] = Json::array();
        for (const TraceStep& s : steps) {
            Json entry{{"name", s.name}};
            entry.update(toJson(deviceTimes(trace, launches, s.start, s.end)));
            object["steps"].push_back(std::move(entry));
        }
        object["rates"] = toJson(rates);
        object["kernels"] = toJson(kernels);
        object["ranges"] = toJson(ranges);
        object["launches"] = toJson(queues);
        object["memory"] = toJson(memory);
        object["warnings"] = Json::array();
        for (const Diagnostic& warning : warnings)
            object["warnings"].push_back(warning.what);
        // Names may hold invalid UTF-8.
        printText("{}\n", object.dump(Json::InvalidText::Replace));
        return;
    }
    printText("{}, {}: {}, {}\n", path, trace.tool, stretch.name, formatDuration(stretch.end - stretch.start));
    if (const Nanoseconds end = endOf(trace); stretch.start > 0 || stretch.end < end)
        printText("from {} to {} of {}; other stretches with --from and --to\n", formatDuration(stretch.start),
                  formatDuration(stretch.end), formatDuration(end));
    printText("\n");
    print(times);
    if (step < 0 && !choice.given() && !steps.empty()) {
        printText("\n");
        std::vector<DeviceTimeCause> causes{DeviceTimeCause::Computing, DeviceTimeCause::Communication,
                                            DeviceTimeCause::HostGap, DeviceTimeCause::Waiting};
        if (causesOf(times).back() == DeviceTimeCause::NotKnown)
            causes.push_back(DeviceTimeCause::NotKnown);
        std::vector<std::string> header{"step", "length"};
        for (const DeviceTimeCause cause : causes)
            header.emplace_back(nameOf(cause));
        header.emplace_back("holds up the others");
        TextTable table(std::move(header));
        for (const TraceStep& s : steps) {
            const DeviceTimes of = deviceTimes(trace, launches, s.start, s.end);
            std::vector<std::string> cells{s.name, formatDuration(s.end - s.start)};
            for (const DeviceTimeCause cause : causes) {
                Nanoseconds sum = 0;
                for (const DeviceTime& device : of.devices)
                    sum += device.of(cause);
                cells.push_back(percent(shareOf(
                    sum, (s.end - s.start) * static_cast<Nanoseconds>(std::max<std::size_t>(1, of.devices.size())))));
            }
            cells.push_back(of.straggler < 0 ? "-" : of.devices[of.straggler].name);
            table.addRow(std::move(cells));
        }
        table.print();
    }
    print(kernels, names);
    print(ranges);
    print(queues);
    print(memory);
    print(rates, {});
}

} // namespace pipewright::app
