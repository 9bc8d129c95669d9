// SPDX-License-Identifier: GPL-3.0-or-later
// Hash maps from Nsight's numbers to lanes and names, filled on first use. O(1) per lookup.
#include "traces/import/nsightlanes.h"

#include "core/base/diagnostic.h"
#include "traces/import/nsighttable.h"

#include <algorithm>
#include <set>

namespace pipewright {

NsightLanes::NsightLanes(SQLite::Database& database, TraceData& data) : m_database(database), m_data(data)
{
    if (!database.tableExists("StringIds"))
        return;
    // Exports have millions of strings and use few, so each is looked up by primary key, if there is one.
    bool isKey = false;
    SQLite::Statement info(database, "SELECT pk FROM pragma_table_info('StringIds') WHERE name = 'id'");
    while (info.executeStep())
        isKey = info.getColumn(0).getInt() != 0;
    if (isKey) {
        m_lookUp.emplace(database, "SELECT value FROM StringIds WHERE id = ?1");
        return;
    }
    NsightTable table(database, "StringIds", {"id", "value"});
    while (table.next())
        if (const auto id = table.integer(0))
            m_names.emplace(*id, m_data.strings.id(table.text(1).value_or("?")));
}

std::uint32_t NsightLanes::nameId(std::optional<std::int64_t> id)
{
    if (!id)
        return m_data.strings.id("?");
    if (const auto found = m_names.find(*id); found != m_names.end())
        return found->second;
    std::string text = "?";
    if (m_lookUp) {
        m_lookUp->bind(1, *id);
        if (m_lookUp->executeStep() && !m_lookUp->getColumn(0).isNull())
            text = m_lookUp->getColumn(0).getString();
        m_lookUp->reset();
    }
    if (text == "?")
        m_data.report.repair("names that the table of strings does not have", "StringIds " + std::to_string(*id));
    return m_names.emplace(*id, m_data.strings.id(text)).first->second;
}

const std::string& NsightLanes::name(std::int64_t id)
{
    return m_data.strings.text(nameId(id));
}

namespace {

std::uint32_t newLane(TraceData& data, TraceLane lane)
{
    if (data.lanes.size() >= (1u << 24))
        throw Error(data.source, "more than sixteen million threads and streams");
    data.lanes.push_back(std::move(lane));
    return static_cast<std::uint32_t>(data.lanes.size() - 1);
}

} // namespace

std::uint32_t NsightLanes::thread(std::int64_t globalThread)
{
    if (globalThread == m_lastThread && !m_threads.empty())
        return m_lastThreadLane;
    auto found = m_threads.find(globalThread);
    if (found == m_threads.end()) {
        TraceLane lane;
        lane.process = processOf(globalThread);
        lane.thread = threadOf(globalThread);
        found = m_threads.emplace(globalThread, newLane(m_data, std::move(lane))).first;
    }
    m_lastThread = globalThread;
    m_lastThreadLane = found->second;
    return found->second;
}

std::uint32_t NsightLanes::stream(std::int64_t globalProcess, std::int64_t device, std::int64_t stream)
{
    const std::int64_t process = processOf(globalProcess);
    const std::tuple key(process, device, stream);
    if (const auto found = m_streams.find(key); found != m_streams.end())
        return found->second;
    TraceLane lane;
    lane.kind = TraceLane::Kind::Stream;
    lane.process = process;
    lane.thread = stream;
    lane.device = static_cast<int>(std::clamp<std::int64_t>(device, 0, 1'000'000));
    const auto [first, isNew] = m_deviceOfProcess.emplace(process, lane.device);
    if (!isNew)
        first->second = std::min(first->second, lane.device);
    return m_streams.emplace(key, newLane(m_data, std::move(lane))).first->second;
}

std::uint32_t NsightLanes::correlation(std::int64_t global, std::int64_t number)
{
    if (number <= 0 || number >= 0x8000'0000)
        return 0;
    const std::int64_t process = processOf(global);
    if (!m_firstProcess)
        m_firstProcess = process;
    if (process == *m_firstProcess)
        return static_cast<std::uint32_t>(number);
    const auto next = static_cast<std::uint32_t>(0x8000'0000u + m_correlations.size());
    return m_correlations
        .emplace((static_cast<std::uint64_t>(process) << 32) | static_cast<std::uint64_t>(number), next)
        .first->second;
}

void NsightLanes::finish(const std::map<std::int64_t, std::pair<int, int>>& known)
{
    std::map<std::int64_t, std::string> processNames;
    std::unordered_map<std::int64_t, std::string> threadNames;
    NsightTable processes(m_database, "PROCESSES", {"globalPid", "name|nameId|processName"});
    while (processes.next())
        processNames[processOf(processes.integerOr(0, 0))] =
            processes.text(1).value_or(processes.integer(1) ? name(*processes.integer(1)) : std::string());
    NsightTable threads(m_database, "ThreadNames", {"globalTid", "nameId|name"});
    while (threads.next())
        threadNames[threads.integerOr(0, 0)] =
            threads.text(1).value_or(threads.integer(1) ? name(*threads.integer(1)) : std::string());
    std::map<int, std::string> gpus;
    NsightTable infos(m_database, "TARGET_INFO_GPU", {"id", "name"});
    while (infos.next())
        gpus[static_cast<int>(infos.integerOr(0, 0) & 0xffff)] =
            infos.text(1).value_or(infos.integer(1) ? name(*infos.integer(1)) : std::string());

    // Ranks as NCCL reports them, else in the order of the devices; processes without a device get the trace's rank.
    std::set<std::int64_t> all;
    for (const TraceLane& lane : m_data.lanes)
        all.insert(lane.process);
    std::map<std::int64_t, int> rankOf;
    if (known.size() >= m_deviceOfProcess.size() && !known.empty()) {
        for (const auto& [process, rank] : known) {
            rankOf[process] = rank.first;
            m_data.ranks = std::max(m_data.ranks, rank.second);
        }
        m_data.rank = rankOf.begin()->second;
        m_data.rankKnown = true;
    } else {
        std::vector<std::pair<int, std::int64_t>> order;
        for (const auto& [process, device] : m_deviceOfProcess)
            order.emplace_back(device, process);
        std::sort(order.begin(), order.end());
        for (const auto& [device, process] : order) {
            const int rank = static_cast<int>(rankOf.size());
            rankOf.emplace(process, rank);
        }
        m_data.ranks = std::max<int>(1, static_cast<int>(rankOf.size()));
    }
    for (TraceLane& lane : m_data.lanes) {
        const auto rank = rankOf.find(lane.process);
        lane.rank = rank == rankOf.end() ? m_data.rank : rank->second;
        if (lane.kind == TraceLane::Kind::Stream) {
            lane.name = "stream " + std::to_string(lane.thread);
            lane.processName = "GPU " + std::to_string(lane.device);
            if (gpus.contains(lane.device) && !gpus[lane.device].empty())
                lane.processName += " (" + gpus[lane.device] + ")";
        } else {
            lane.processName = processNames.contains(lane.process) && !processNames[lane.process].empty()
                                   ? processNames[lane.process]
                                   : "process " + std::to_string(lane.process);
        }
    }
    for (const auto& [global, lane] : m_threads) {
        const auto found = threadNames.find(global);
        m_data.lanes[lane].name =
            "thread " + std::to_string(threadOf(global))
            + (found == threadNames.end() || found->second.empty() ? "" : " (" + found->second + ")");
    }
}

} // namespace pipewright
