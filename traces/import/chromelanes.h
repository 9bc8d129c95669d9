// SPDX-License-Identifier: GPL-3.0-or-later
// State of a Chrome import between events: lanes by process and thread, open slices, arrows with a missing end,
// counters.
#pragma once

#include "traces/import/chromeevent.h"
#include "traces/store/activity.h"

#include <map>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace pipewright {

class ChromeLanes {
public:
    explicit ChromeLanes(TraceData& data) : m_data(data) {}

    std::uint32_t lane(const ChromeEvent& event, bool onDevice);
    /// Asynchronous slices of one category and process share a lane; they may overlap.
    std::uint32_t asyncLane(const ChromeEvent& event);
    void describe(const ChromeEvent& metadata); ///< names and sort indexes

    void begin(const ChromeEvent& event, std::size_t activity);
    bool end(const ChromeEvent& event, Nanoseconds time); ///< false: no slice was open
    void beginAsync(const ChromeEvent& event, std::size_t activity);
    bool endAsync(const ChromeEvent& event, Nanoseconds time);
    void count(const ChromeEvent& event, std::string_view series, Nanoseconds time, double value);
    /// A report of PyTorch's allocator on the allocated bytes (memorycounter.h).
    void countMemory(const ChromeEvent& event, Nanoseconds time);
    void flow(const ChromeEvent& event, Nanoseconds time);

    /// Names the lanes, closes open slices at the trace's end and joins the arrows; reports those without a match.
    /// Lanes and counters get their process's rank, else the trace's.
    void finish();

private:
    struct End {
        std::uint32_t lane = 0;
        Nanoseconds time = 0;
    };
    struct Names {
        std::string process, label;
        std::int64_t sortIndex = 0;
        std::optional<int> rank;
        bool predicted = false;
    };
    const std::string& key(const ChromeEvent& event, std::string_view more);
    std::uint32_t newLane(const ChromeEvent& event);
    void closeOpen();
    void joinFlows();
    void finishMemory();

    TraceData& m_data;
    std::string m_key;
    std::unordered_map<std::string, std::uint32_t> m_lanes, m_asyncLanes;
    std::vector<std::string> m_processOf, m_threadOf; ///< per lane, as written in the trace
    std::unordered_map<std::string, Names> m_processes;
    std::unordered_map<std::string, std::string> m_threadNames;
    std::unordered_map<std::string, std::int64_t> m_threadOrder;
    std::vector<std::vector<std::size_t>> m_open; ///< per lane
    std::unordered_map<std::string, std::vector<std::size_t>> m_openAsync;
    std::unordered_map<std::string, std::size_t> m_counters;
    std::vector<std::string> m_counterProcess;                         ///< per counter
    std::map<std::pair<int, std::string_view>, TraceCounter> m_memory; ///< by device and name
    std::unordered_map<std::string, End> m_flowFrom;
    std::vector<std::pair<std::string, End>> m_flowTo;
    std::string m_lastLaneKey;
    std::uint32_t m_lastLane = 0;
};

/// Shifts all times so that the earliest is 0; returns what was subtracted.
Nanoseconds moveToZero(TraceData& data);
/// Marks the streams that run only communication kernels, or that a rule names (kernelgroups.h).
void markCommunicationStreams(TraceData& data);

} // namespace pipewright
