// SPDX-License-Identifier: GPL-3.0-or-later
#include "traces/import/traceimport.h"

#include "core/base/inputfile.h"
#include "traces/import/chromejson.h"
#include "traces/import/clockalignment.h"
#include "traces/import/lanechecks.h"
#include "traces/import/nsight.h"
#include "traces/import/recognisedblocks.h"
#include "traces/store/database.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

namespace pipewright {

TraceFormat traceFormatOf(const std::string& path)
{
    const std::string head = beginningOf(path, 64);
    if (head.starts_with("\x1f\x8b"))
        return TraceFormat::ChromeJson;
    if (head.starts_with("SQLite format 3"))
        return TraceFormat::Nsight;
    const std::size_t first = head.find_first_not_of(" \t\r\n\xef\xbb\xbf");
    if (first == std::string::npos)
        return TraceFormat::None;
    if (head[first] == '{')
        return TraceFormat::ChromeJson;
    const std::size_t second = head[first] == '[' ? head.find_first_not_of(" \t\r\n", first + 1) : std::string::npos;
    return second != std::string::npos && (head[second] == '{' || head[second] == ']') ? TraceFormat::ChromeJson
                                                                                       : TraceFormat::None;
}

bool isForeignTrace(const std::string& path)
try {
    switch (traceFormatOf(path)) {
    case TraceFormat::None: return false;
    case TraceFormat::Nsight: {
        const SQLite::Database database = openReadOnly(path);
        return database.tableExists("StringIds") && !database.tableExists("RECORDS");
    }
    case TraceFormat::ChromeJson: break;
    }
    const std::string head = beginningOf(path, 64 << 10);
    // A design is a JSON object too, so an object must have a member of traces within its first 64 KiB.
    return head.starts_with("\x1f\x8b") || head[head.find_first_not_of(" \t\r\n\xef\xbb\xbf")] == '['
           || head.find("\"traceEvents\"") != std::string::npos || head.find("\"schemaVersion\"") != std::string::npos;
} catch (const SQLite::Exception& error) {
    rethrowIfLocked(path, error);
    return false;
} catch (const std::exception&) {
    return false;
}

bool isTrace(const std::string& path)
try {
    (void)openTraceDatabase(path);
    return true;
} catch (const SQLite::Exception& error) {
    rethrowIfLocked(path, error);
    return false;
} catch (const std::exception&) {
    return false;
}

TraceData importTrace(const std::string& path, const WorkProgress& progress, std::uint64_t most)
{
    switch (traceFormatOf(path)) {
    case TraceFormat::Nsight: return importNsight(path, progress);
    case TraceFormat::ChromeJson: return importChromeJson(*openBytes(path, most), path, progress);
    case TraceFormat::None: break;
    }
    openBytes(path); // throws Error with the reason when a file cannot be read
    throw Error(path, "this is no trace that can be imported: neither JSON, nor gzip, nor a SQLite database",
                "export Chrome JSON from PyTorch's profiler, or `nsys export --type sqlite` from Nsight Systems");
}

namespace {

/// Gives every file its own rank: first the known ranks, then the free ones in order.
void giveRanks(std::vector<TraceData>& traces)
{
    std::set<int> taken;
    const auto severalInOne = [](const TraceData& trace) {
        return std::any_of(trace.lanes.begin(), trace.lanes.end(),
                           [&](const TraceLane& l) { return l.rank != trace.lanes[0].rank; });
    };
    for (TraceData& trace : traces)
        if (trace.rankKnown && !taken.insert(trace.rank).second) {
            trace.rankKnown = false;
            trace.report.warn("rank " + std::to_string(trace.rank) + " has more than one file, and " + trace.source
                                  + " stands for a rank of its own",
                              "give one file per rank");
        }
    int next = 0;
    for (TraceData& trace : traces) {
        if (!trace.rankKnown) {
            while (taken.contains(next))
                ++next;
            taken.insert(next);
            trace.rank = next;
        }
        if (severalInOne(trace)) // an export of a whole node has numbered its processes itself
            continue;
        for (TraceLane& lane : trace.lanes)
            lane.rank = trace.rank;
        for (TraceCounter& counter : trace.counters)
            counter.rank = trace.rank;
    }
}

} // namespace

std::vector<std::string> traceFiles(const std::vector<std::string>& paths)
{
    std::vector<std::string> files;
    for (const std::string& path : paths) {
        std::error_code error;
        if (!std::filesystem::is_directory(path, error)) {
            files.push_back(path);
            continue;
        }
        const std::size_t before = files.size();
        for (const auto& entry : std::filesystem::directory_iterator(path, error))
            if (entry.is_regular_file(error) && isForeignTrace(entry.path().string()))
                files.push_back(entry.path().string());
        std::sort(files.begin() + static_cast<std::ptrdiff_t>(before), files.end());
        if (files.size() == before)
            throw Error(path, "no file of this folder is another tool's trace",
                        "Chrome JSON of PyTorch's profiler, plain or .gz, or SQLite exports of Nsight Systems");
    }
    return files;
}

ImportedTrace importTraces(const std::vector<std::string>& given, const std::string& output, bool overwrite,
                           const WorkProgress& progress, std::uint64_t most)
{
    const std::vector<std::string> paths = traceFiles(given);
    std::vector<TraceData> traces;
    const double share = 0.6 / static_cast<double>(std::max<std::size_t>(1, paths.size()));
    for (std::size_t i = 0; i < paths.size(); ++i)
        traces.push_back(importTrace(
            paths[i], progress.part(share * static_cast<double>(i), share * static_cast<double>(i + 1)), most));
    TraceData data;
    if (traces.size() == 1) {
        data = std::move(traces[0]);
    } else {
        giveRanks(traces);
        alignClocks(traces);
        data = merged(std::move(traces));
    }
    clipToNextStart(data);
    const RecognisedBlocks blocks = recogniseBlocks(data);
    nameUnknownLanes(data);
    ImportedTrace result;
    for (const Activity& activity : data.activities)
        result.length = std::max(result.length, activity.end);
    writeActivities(output, data, blocks, overwrite, progress.part(0.6, 1));
    std::set<int> ranks;
    for (const TraceLane& lane : data.lanes)
        ranks.insert(lane.rank);
    result.tool = data.tool;
    result.ranks = static_cast<int>(ranks.size());
    result.slices = static_cast<std::int64_t>(data.activities.size());
    result.lanes = static_cast<std::int64_t>(data.lanes.size());
    result.blocks = std::count_if(blocks.records.begin(), blocks.records.end(), [&](const TaskRecord& record) {
        return blocks.tasks[record.task].kind == TaskKind::Compute;
    });
    result.steps = static_cast<std::int64_t>(blocks.steps.size());
    result.clocks = data.clocks;
    result.report = data.report;
    return result;
}

} // namespace pipewright
