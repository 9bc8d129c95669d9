// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/recordingtext.h"

#include "app/command.h"
#include "app/devicetimetext.h"
#include "app/explanationtext.h"
#include "app/table.h"
#include "app/terminal.h"

#include "core/base/units.h"
#include "traces/analysis/devicetime.h"

#include <fmt/format.h>

#include <algorithm>

namespace pipewright::app {

namespace {

constexpr std::size_t shownNames = 12;

/// Names of kernels are long and differ in their template arguments.
std::string shortened(const std::string& name)
{
    constexpr std::size_t most = 60;
    const std::string text(withoutScope(name));
    return text.size() <= most ? text : text.substr(0, most - 1) + "…";
}

JsonValue toJsonRow(const KernelRow& row, double share)
{
    return {{"name", row.name},      {"group", row.group},     {"count", row.count},    {"total_ns", row.total},
            {"mean_ns", row.mean()}, {"min_ns", row.shortest}, {"max_ns", row.longest}, {"share", share}};
}

std::vector<std::string> cellsOf(const KernelRow& row, double share)
{
    return {
        std::to_string(row.count),    formatDuration(row.total),   formatDuration(static_cast<Nanoseconds>(row.mean())),
        formatDuration(row.shortest), formatDuration(row.longest), percent(share)};
}

std::string placeOf(int rank, int device)
{
    return device < 0 ? fmt::format("rank {}, host", rank) : fmt::format("rank {}, GPU {}", rank, device);
}

} // namespace

JsonValue toJson(const KernelTable& table)
{
    JsonValue object{{"of", table.ofHost ? "operators" : "kernels"}, {"total_ns", table.total}};
    object["names"] = JsonValue::array();
    for (const KernelRow& row : table.names)
        object["names"].push_back(toJsonRow(row, table.shareOf(row)));
    object["groups"] = JsonValue::array();
    for (const KernelRow& row : table.groups)
        object["groups"].push_back(toJsonRow(row, table.shareOf(row)));
    return object;
}

JsonValue toJson(const std::vector<LaunchQueue>& queues)
{
    JsonValue array = JsonValue::array();
    for (const LaunchQueue& queue : queues)
        array.push_back(
            {{"rank", queue.rank},
             {"device", queue.device},
             {"stream", queue.stream},
             {"launches", queue.launches},
             {"delay_ns", {{"median", queue.medianDelay}, {"p95", queue.highDelay}, {"max", queue.longestDelay}}},
             {"shorter_than_their_call", queue.shorterThanCall},
             {"queue", {{"mean", queue.meanLength}, {"max", queue.longest}, {"full_ns", queue.full}}}});
    return array;
}

JsonValue toJson(const std::vector<CounterPeak>& peaks)
{
    JsonValue array = JsonValue::array();
    for (const CounterPeak& peak : peaks)
        array.push_back({{"rank", peak.rank},
                         {"device", peak.device < 0 ? JsonValue() : JsonValue(peak.device)},
                         {"counter", peak.name},
                         {"first", peak.first},
                         {"highest", peak.highest},
                         {"highest_at_ns", peak.highestAt},
                         {"last", peak.last}});
    return array;
}

void print(const KernelTable& table, std::size_t names)
{
    if (table.names.empty())
        return;
    const auto one = [&](const char* title, const std::vector<KernelRow>& rows, std::size_t most) {
        printText("\n");
        TextTable text({title, "count", "total", "mean", "shortest", "longest", "share"});
        for (std::size_t i = 0; i < std::min(most, rows.size()); ++i) {
            std::vector<std::string> cells = cellsOf(rows[i], table.shareOf(rows[i]));
            cells.insert(cells.begin(), shortened(rows[i].name));
            text.addRow(std::move(cells));
        }
        text.print();
    };
    one("group", table.groups, table.groups.size());
    one(table.ofHost ? "operator, without what it calls" : "kernel", table.names, names);
    if (table.names.size() > names)
        printText("and {} more: --kernels {}\n", table.names.size() - names, table.names.size());
}

void print(const std::vector<LaunchQueue>& queues)
{
    if (queues.empty())
        return;
    printText("\n");
    TextTable table({"launched on", "launches", "delay, median", "95th percentile", "longest",
                     "shorter than their call", "queue, mean", "longest", "full"});
    for (const LaunchQueue& queue : queues)
        table.addRow({placeOf(queue.rank, queue.device) + ", " + queue.stream, std::to_string(queue.launches),
                      formatDuration(queue.medianDelay), formatDuration(queue.highDelay),
                      formatDuration(queue.longestDelay), std::to_string(queue.shorterThanCall),
                      fmt::format("{:.1f}", queue.meanLength), std::to_string(queue.longest),
                      formatDuration(queue.full)});
    table.print();
}

void print(const std::vector<CounterPeak>& peaks)
{
    if (peaks.empty())
        return;
    printText("\n");
    const auto size = [](double value) { return formatSize(static_cast<Bytes>(std::max(0.0, value))); };
    TextTable table({"memory", "at first", "highest", "when", "at last"});
    for (const CounterPeak& peak : peaks)
        table.addRow({placeOf(peak.rank, peak.device) + ": " + peak.name, size(peak.first), size(peak.highest),
                      formatDuration(peak.highestAt), size(peak.last)});
    table.print();
}

JsonValue toJson(const std::vector<RangeTime>& ranges)
{
    JsonValue array = JsonValue::array();
    for (const RangeTime& range : ranges)
        array.push_back({{"range", range.name},
                         {"count", range.count},
                         {"host_ns", range.host},
                         {"computing_ns", range.computing},
                         {"communication_ns", range.communication}});
    return array;
}

void print(const std::vector<RangeTime>& ranges)
{
    if (ranges.empty())
        return;
    printText("\n");
    constexpr std::size_t most = 16;
    TextTable table({"range", "count", "open", "launched: computing", "communication"});
    for (std::size_t i = 0; i < std::min(most, ranges.size()); ++i)
        table.addRow({shortened(ranges[i].name), std::to_string(ranges[i].count), formatDuration(ranges[i].host),
                      formatDuration(ranges[i].computing), formatDuration(ranges[i].communication)});
    table.print();
}

void compareRecordings(const std::string& before, const std::string& after, int step, const StretchChoice& choice,
                       bool json)
{
    struct Side {
        StoredActivities trace;
        TraceStep stretch;
        KernelTable kernels;
        DeviceTimes times;
    };
    const auto read = [&](const std::string& path) {
        Side side{readActivities(path), {}, {}, {}};
        side.stretch = choice.of(side.trace, path, step);
        side.kernels = kernelTable(side.trace, side.stretch.start, side.stretch.end);
        side.times = deviceTimes(side.trace, LaunchCalls(side.trace), side.stretch.start, side.stretch.end);
        return side;
    };
    const Side first = read(before), second = read(after);
    const std::vector<KernelChange> names = changesOf(first.kernels.names, second.kernels.names);
    const std::vector<KernelChange> groups = changesOf(first.kernels.groups, second.kernels.groups);
    const auto lengthOf = [](const Side& side) { return side.stretch.end - side.stretch.start; };
    if (json) {
        const auto changes = [](const std::vector<KernelChange>& list) {
            JsonValue array = JsonValue::array();
            for (const KernelChange& change : list)
                array.push_back({{"name", change.name},
                                 {"count", {change.before.count, change.after.count}},
                                 {"total_ns", {change.before.total, change.after.total}},
                                 {"change_ns", change.change()}});
            return array;
        };
        JsonValue object{{"traces", {before, after}},
                         {"stretch", {first.stretch.name, second.stretch.name}},
                         {"length_ns", {lengthOf(first), lengthOf(second)}},
                         {"groups", changes(groups)},
                         {"names", changes(names)}};
        object["devices"] = {toJson(first.times)["per_device"], toJson(second.times)["per_device"]};
        printText("{}\n", object.dump(JsonValue::InvalidText::Replace));
        return;
    }
    printText("{}, {}: {}\n{}, {}: {} ({})\n", before, first.stretch.name, formatDuration(lengthOf(first)), after,
              second.stretch.name, formatDuration(lengthOf(second)),
              signedDuration(lengthOf(second) - lengthOf(first)));
    const auto one = [](const std::string& title, const std::vector<KernelChange>& list, std::size_t most) {
        printText("\n");
        TextTable table({title, "count", "then", "total", "then", "change"});
        for (std::size_t i = 0; i < std::min(most, list.size()); ++i)
            table.addRow({shortened(list[i].name), std::to_string(list[i].before.count),
                          std::to_string(list[i].after.count), formatDuration(list[i].before.total),
                          formatDuration(list[i].after.total), signedDuration(list[i].change())});
        table.print();
    };
    one("group", groups, groups.size());
    one(first.kernels.ofHost ? "operator" : "kernel", names, shownNames);
    if (names.size() > shownNames)
        printText("and {} more: --json\n", names.size() - shownNames);
    if (first.times.devices.size() != second.times.devices.size())
        return;
    printText("\n");
    DeviceTimes both = first.times;
    both.devices.insert(both.devices.end(), second.times.devices.begin(), second.times.devices.end());
    const std::vector<DeviceTimeCause> causes = causesOf(both);
    std::vector<std::string> header{"device"};
    for (const DeviceTimeCause cause : causes)
        header.emplace_back(nameOf(cause));
    TextTable devices(std::move(header));
    for (std::size_t d = 0; d < first.times.devices.size(); ++d) {
        std::vector<std::string> cells{second.times.devices[d].name};
        for (const DeviceTimeCause cause : causes)
            cells.push_back(signedDuration(second.times.devices[d].of(cause) - first.times.devices[d].of(cause)));
        devices.addRow(std::move(cells));
    }
    devices.print();
}

} // namespace pipewright::app
