// SPDX-License-Identifier: GPL-3.0-or-later
// Hash maps from process and thread to lane, a stack of open slices per lane, and a map of open flows by id. Amortised
// O(1) per event.
#include "traces/import/chromelanes.h"

#include "core/base/diagnostic.h"
#include "traces/store/kernelgroups.h"
#include "traces/store/memorycounter.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <map>
#include <numeric>
#include <set>

namespace pipewright {

namespace {

constexpr char separator = '\x1f';
constexpr std::string_view onlySeries = "value"; ///< of a counter that has no others

std::int64_t numberOr(std::string_view text, std::int64_t otherwise)
{
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc{} && end == text.data() + text.size() ? number : otherwise;
}

} // namespace

const std::string& ChromeLanes::key(const ChromeEvent& event, std::string_view more)
{
    m_key.assign(event.process);
    m_key += separator;
    m_key += more;
    return m_key;
}

std::uint32_t ChromeLanes::newLane(const ChromeEvent& event)
{
    if (m_data.lanes.size() >= (1u << 24))
        throw Error(m_data.source, "more than sixteen million lanes", "is this a trace of threads?");
    TraceLane lane;
    lane.process = numberOr(event.process, 0);
    lane.thread = numberOr(event.thread, 0);
    m_data.lanes.push_back(std::move(lane));
    m_processOf.emplace_back(event.process);
    m_threadOf.emplace_back(event.thread);
    m_open.emplace_back();
    return static_cast<std::uint32_t>(m_data.lanes.size() - 1);
}

std::uint32_t ChromeLanes::lane(const ChromeEvent& event, bool onDevice)
{
    const std::string& name = key(event, event.thread);
    if (m_data.lanes.empty() || name != m_lastLaneKey) {
        const auto found = m_lanes.find(name);
        m_lastLane = found != m_lanes.end() ? found->second : m_lanes.emplace(name, newLane(event)).first->second;
        m_lastLaneKey = name;
    }
    TraceLane& lane = m_data.lanes[m_lastLane];
    if (onDevice && lane.kind != TraceLane::Kind::Stream) {
        lane.kind = TraceLane::Kind::Stream;
        lane.device = static_cast<int>(std::clamp<std::int64_t>(numberOr(event.device, lane.process), 0, 1'000'000));
        lane.thread = numberOr(event.stream, lane.thread);
    }
    return m_lastLane;
}

std::uint32_t ChromeLanes::asyncLane(const ChromeEvent& event)
{
    const std::string& name = key(event, event.category);
    if (const auto found = m_asyncLanes.find(name); found != m_asyncLanes.end())
        return found->second;
    const std::string keep = name;
    const std::uint32_t lane = newLane(event);
    m_data.lanes[lane].name = event.category.empty() ? "asynchronous" : std::string(event.category);
    m_asyncLanes.emplace(keep, lane);
    return lane;
}

void ChromeLanes::describe(const ChromeEvent& event)
{
    Names& process = m_processes[std::string(event.process)];
    if (event.name == "process_name") {
        process.process = event.newName;
        if (const std::int64_t rank = numberOr(event.rank, -1); rank >= 0 && rank <= 1'000'000)
            process.rank = static_cast<int>(rank);
        process.predicted = event.predicted == "true";
    } else if (event.name == "process_labels")
        process.label = event.newName;
    else if (event.name == "process_sort_index")
        process.sortIndex = numberOr(event.sortIndex, 0);
    else if (event.name == "thread_name")
        m_threadNames[key(event, event.thread)] = event.newName;
    else if (event.name == "thread_sort_index")
        m_threadOrder[key(event, event.thread)] = numberOr(event.sortIndex, 0);
}

void ChromeLanes::begin(const ChromeEvent&, std::size_t activity)
{
    m_open[m_data.activities[activity].lane].push_back(activity);
}

bool ChromeLanes::end(const ChromeEvent& event, Nanoseconds time)
{
    const auto found = m_lanes.find(key(event, event.thread));
    if (found == m_lanes.end() || m_open[found->second].empty())
        return false;
    Activity& activity = m_data.activities[m_open[found->second].back()];
    m_open[found->second].pop_back();
    activity.end = std::max(activity.start, time);
    return true;
}

void ChromeLanes::beginAsync(const ChromeEvent& event, std::size_t activity)
{
    key(event, event.category);
    m_key += separator;
    m_key += event.id;
    m_openAsync[m_key].push_back(activity);
}

bool ChromeLanes::endAsync(const ChromeEvent& event, Nanoseconds time)
{
    key(event, event.category);
    m_key += separator;
    m_key += event.id;
    const auto found = m_openAsync.find(m_key);
    if (found == m_openAsync.end())
        return false;
    Activity& activity = m_data.activities[found->second.back()];
    activity.end = std::max(activity.start, time);
    found->second.pop_back();
    if (found->second.empty())
        m_openAsync.erase(found);
    return true;
}

void ChromeLanes::count(const ChromeEvent& event, std::string_view series, Nanoseconds time, double value)
{
    key(event, event.name);
    m_key += separator;
    m_key += series;
    auto found = m_counters.find(m_key);
    if (found == m_counters.end()) {
        found = m_counters.emplace(m_key, m_data.counters.size()).first;
        TraceCounter counter;
        counter.name = event.name;
        if (!series.empty() && series != onlySeries)
            counter.name += ": " + std::string(series);
        m_data.counters.push_back(std::move(counter));
        m_counterProcess.emplace_back(event.process);
    }
    TraceCounter& counter = m_data.counters[found->second];
    counter.time.push_back(time);
    counter.value.push_back(value);
}

void ChromeLanes::countMemory(const ChromeEvent& event, Nanoseconds time)
{
    constexpr std::int64_t host = 0; // PyTorch's number for host memory
    const bool onHost = numberOr(event.deviceType, host) == host;
    const int device =
        onHost ? -1 : static_cast<int>(std::clamp<std::int64_t>(numberOr(event.deviceId, 0), 0, 1'000'000));
    const auto add = [&](const char* name, std::string_view text) {
        TraceCounter& counter = m_memory[{device, name}];
        counter.time.push_back(time);
        counter.value.push_back(static_cast<double>(numberOr(text, 0)));
    };
    add(allocatedByPytorch, event.totalAllocated);
    if (!onHost && !event.totalReserved.empty())
        add(reservedByPytorch, event.totalReserved);
}

/// Sorts the allocator's reports by time: in the trace they are grouped by thread.
void ChromeLanes::finishMemory()
{
    for (auto& [key, counter] : m_memory) {
        std::vector<std::size_t> order(counter.time.size());
        std::iota(order.begin(), order.end(), std::size_t{0});
        std::stable_sort(order.begin(), order.end(),
                         [&times = counter.time](std::size_t a, std::size_t b) { return times[a] < times[b]; });
        TraceCounter sorted;
        sorted.rank = m_data.rank;
        sorted.device = key.first;
        sorted.name = key.second;
        for (const std::size_t i : order) {
            sorted.time.push_back(counter.time[i]);
            sorted.value.push_back(counter.value[i]);
        }
        m_data.counters.push_back(std::move(sorted));
    }
    m_memory.clear();
}

void ChromeLanes::flow(const ChromeEvent& event, Nanoseconds time)
{
    const End here{lane(event, false), time};
    std::string name(event.category);
    name += separator;
    name += event.name;
    name += separator;
    name += event.id;
    const auto from = m_flowFrom.find(name);
    if (event.phase != "s") {
        if (from != m_flowFrom.end()) { // joined at once, so that ids can be reused
            m_data.flows.push_back({from->second.lane, here.lane, from->second.time, here.time});
            m_flowFrom.erase(from);
        } else {
            m_flowTo.emplace_back(name, here);
        }
    }
    if (event.phase != "f") // an intermediate step ends one part and begins the next
        m_flowFrom.insert_or_assign(std::move(name), here);
}

void ChromeLanes::joinFlows()
{
    for (const auto& [name, to] : m_flowTo) {
        const auto from = m_flowFrom.find(name);
        if (from == m_flowFrom.end()) {
            // Of work that was launched before the recording began; who launched the rest is known by correlation.
            if (m_data.lanes[to.lane].kind != TraceLane::Kind::Stream)
                m_data.report.lose("arrows without their beginning", "id " + name.substr(name.rfind(separator) + 1));
            continue;
        }
        if (from->second.time == to.time && from->second.lane == to.lane)
            continue; // an intermediate step, which begins the next part
        m_data.flows.push_back({from->second.lane, to.lane, from->second.time, to.time});
        m_flowFrom.erase(from);
    }
    m_data.report.lose("arrows without their end", "", static_cast<std::int64_t>(m_flowFrom.size()));
}

void ChromeLanes::closeOpen()
{
    Nanoseconds last = std::numeric_limits<Nanoseconds>::min();
    for (const Activity& activity : m_data.activities)
        last = std::max(last, activity.end);
    const auto close = [&](std::size_t open) {
        Activity& activity = m_data.activities[open];
        activity.end = std::max(activity.start, last);
        m_data.report.repair("beginnings without their end; they last until the trace ends",
                             m_data.strings.text(activity.name));
    };
    for (const auto& stack : m_open)
        std::for_each(stack.begin(), stack.end(), close);
    for (const auto& [key, stack] : m_openAsync)
        std::for_each(stack.begin(), stack.end(), close);
}

void ChromeLanes::finish()
{
    closeOpen();
    joinFlows();
    std::set<int> ranks;
    const auto rankOf = [&](const std::string& process) {
        const auto known = m_processes.find(process);
        const int rank = known == m_processes.end() ? m_data.rank : known->second.rank.value_or(m_data.rank);
        ranks.insert(rank);
        return rank;
    };
    for (std::size_t i = 0; i < m_data.lanes.size(); ++i) {
        TraceLane& lane = m_data.lanes[i];
        lane.rank = rankOf(m_processOf[i]);
        const bool stream = lane.kind == TraceLane::Kind::Stream;
        const std::string key = m_processOf[i] + separator + m_threadOf[i];
        if (const auto process = m_processes.find(m_processOf[i]); process != m_processes.end()) {
            lane.processName = process->second.process;
            if (!process->second.label.empty() && process->second.label != "CPU")
                lane.processName += (lane.processName.empty() ? "" : ", ") + process->second.label;
            lane.sortIndex = process->second.sortIndex;
            lane.predicted = process->second.predicted;
        }
        if (lane.processName.empty())
            lane.processName = stream ? "GPU " + std::to_string(lane.device) : "process " + m_processOf[i];
        if (const auto name = m_threadNames.find(key);
            name != m_threadNames.end() && !name->second.empty() && lane.name.empty())
            lane.name = name->second;
        if (lane.name.empty())
            lane.name = (stream ? "stream " : "thread ") + (m_threadOf[i].empty() ? std::string("0") : m_threadOf[i]);
        if (const auto order = m_threadOrder.find(key); order != m_threadOrder.end())
            lane.sortIndex = order->second;
    }
    // A process with streams stands for a device, so its counters are the device's.
    std::map<std::string, int> devices;
    for (std::size_t i = 0; i < m_data.lanes.size(); ++i)
        if (m_data.lanes[i].kind == TraceLane::Kind::Stream)
            devices.emplace(m_processOf[i], m_data.lanes[i].device);
    const std::set<std::string> counting(m_counterProcess.begin(), m_counterProcess.end());
    for (std::size_t i = 0; i < m_counterProcess.size(); ++i) {
        TraceCounter& counter = m_data.counters[i];
        counter.rank = rankOf(m_counterProcess[i]);
        const auto process = m_processes.find(m_counterProcess[i]);
        if (const auto device = devices.find(m_counterProcess[i]); device != devices.end())
            counter.device = device->second;
        else if (counting.size() > 1 && process != m_processes.end() && !process->second.process.empty())
            counter.name = process->second.process + ", " + counter.name;
    }
    m_data.ranks = std::max(m_data.ranks, static_cast<int>(ranks.size()));
    finishMemory();
    markCommunicationStreams(m_data);
    for (TraceLane& lane : m_data.lanes)
        lane.unknown = !lane.predicted;
    for (const Activity& activity : m_data.activities) {
        TraceLane& lane = m_data.lanes[activity.lane];
        lane.unknown = lane.unknown && activity.kind() == ActivityKind::Other;
        if (lane.predicted)
            m_data.report.repair("slices of a prediction beside the recording; shown, and no blocks of it",
                                 lane.processName);
    }
}

Nanoseconds moveToZero(TraceData& data)
{
    Nanoseconds first = std::numeric_limits<Nanoseconds>::max();
    for (const Activity& activity : data.activities)
        first = std::min(first, activity.start);
    for (const TraceCounter& counter : data.counters)
        for (const Nanoseconds time : counter.time)
            first = std::min(first, time);
    if (first == std::numeric_limits<Nanoseconds>::max())
        return 0;
    for (Activity& activity : data.activities) {
        activity.start -= first;
        activity.end -= first;
    }
    for (TraceCounter& counter : data.counters)
        for (Nanoseconds& time : counter.time)
            time -= first;
    for (TraceFlow& flow : data.flows) {
        flow.from -= first;
        flow.to -= first;
    }
    return first;
}

void markCommunicationStreams(TraceData& data)
{
    const KernelGroups& groups = KernelGroups::standard();
    std::vector<std::uint8_t> communicates(data.strings.size());
    for (std::size_t name = 0; name < communicates.size(); ++name)
        communicates[name] = groups.isCommunication(data.strings.text(static_cast<std::uint32_t>(name)));
    std::vector<std::uint8_t> kernels(data.lanes.size(), 0), others(data.lanes.size(), 0);
    for (const Activity& activity : data.activities)
        if (activity.kind() == ActivityKind::Kernel)
            (communicates[activity.name] ? kernels : others)[activity.lane] = 1;
    for (std::size_t i = 0; i < data.lanes.size(); ++i) {
        TraceLane& lane = data.lanes[i];
        lane.communication = lane.kind == TraceLane::Kind::Stream
                             && ((kernels[i] != 0 && others[i] == 0) || groups.isCommunicationStream(lane.name));
    }
}

} // namespace pipewright
