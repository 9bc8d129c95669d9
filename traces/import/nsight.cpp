// SPDX-License-Identifier: GPL-3.0-or-later
// Reads each known table once into activities, then joins kernels with launches and NCCL calls by hash maps. O(rows log
// rows).
#include "traces/import/nsight.h"

#include "core/base/formattedtext.h"

#include "traces/import/chromelanes.h"
#include "traces/import/ncclpayload.h"
#include "traces/import/nsightlanes.h"
#include "traces/import/nsighttable.h"
#include "traces/store/database.h"
#include "traces/store/schema.h"

#include <SQLiteCpp/SQLiteCpp.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <unordered_map>

namespace pipewright {

namespace {

enum NvtxType { Mark = 34, PushPop = 59, StartEnd = 60, OldRange = 70, DomainCreate = 75 };

/// "ncclAllReduce" -> "allreduce", as PyTorch names it.
std::string collectiveOf(const std::string& range)
{
    std::string name = range.substr(4);
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return name;
}

class NsightImporter {
public:
    NsightImporter(SQLite::Database& database, const std::string& path)
        : m_database(database), m_path(path), m_lanes(database, m_data),
          m_payloads(database, [this](std::int64_t id) { return m_lanes.name(id); })
    {
    }

    TraceData run(const WorkProgress& progress)
    {
        m_data.source = m_path;
        readHead();
        struct Part {
            void (NsightImporter::*read)();
        };
        const Part parts[] = {{&NsightImporter::readCalls},   {&NsightImporter::readKernels},
                              {&NsightImporter::readCopies},  {&NsightImporter::readSets},
                              {&NsightImporter::readSyncs},   {&NsightImporter::readNvtx},
                              {&NsightImporter::readSmaller}, {&NsightImporter::readMetrics},
                              {&NsightImporter::readMemory},  {&NsightImporter::tellKernelsTheirCall}};
        double done = 0;
        for (const Part& part : parts) {
            (this->*part.read)();
            progress.at(++done / static_cast<double>(std::size(parts)), m_path);
        }
        const std::string others = joined(tablesNotRead(m_database, m_tablesRead), ", ");
        if (m_data.activities.empty())
            throw Error(m_path, "the export holds no event" + (others.empty() ? "" : " that is read, but " + others),
                        "record with --trace=cuda,nvtx and export with `nsys export --type sqlite`");
        if (!others.empty())
            m_data.report.warn("tables of events that are not read: " + others, "");
        closeOpenRanges();
        m_lanes.finish(m_rankOfProcess);
        tellPeersByTheirRank();
        markCommunicationStreams(m_data);
        return std::move(m_data);
    }

private:
    static std::string example(const NsightTable& table)
    {
        return table.name() + " row " + std::to_string(table.row());
    }

    void readHead()
    {
        m_data.tool = "Nsight Systems";
        NsightTable meta(m_database, "META_DATA_EXPORT", {"name", "value"});
        while (meta.next())
            if (meta.text(0) == "EXPORT_SCHEMA_VERSION")
                m_data.tool += ", export schema " + meta.text(1).value_or("?");
        NsightTable session(m_database, "TARGET_INFO_SESSION_START_TIME", {"utcEpochNs"});
        if (session.next())
            m_data.originEpochNs = session.integerOr(0, 0);
        NsightTable diagnostics(m_database, "DIAGNOSTIC_EVENT", {"severity", "text"});
        while (diagnostics.next())
            if (diagnostics.integerOr(0, 0) >= 2) // warnings and errors
                m_data.report.repair("the profiler itself warned: " + diagnostics.text(1).value_or("?"), "");
    }

    /// Appends the slice of the table's columns 0 and 1; null when its times are invalid.
    Activity* add(const NsightTable& table, std::uint32_t lane, ActivityKind kind, std::uint32_t name,
                  bool mayLackEnd = false)
    {
        const auto start = table.integer(0), end = table.integer(1);
        const char* reason = nullptr;
        if (!start || (!end && !mayLackEnd))
            reason = "rows without a start or an end";
        else if (*start == 0 && end == 0)
            reason = "records to which the driver gave no time";
        else if (end && *end < *start)
            reason = "rows that end before they begin";
        else if (*start < 0 && end && *end < 0)
            reason = "ranges from before the recording";
        if (reason) {
            m_data.report.lose(reason, example(table));
            return nullptr;
        }
        if (*start < 0)
            m_data.report.repair("ranges that began before the recording; shown from its beginning", example(table));
        Activity activity;
        activity.start = std::max<Nanoseconds>(0, *start);
        activity.end = end.value_or(activity.start);
        activity.name = name;
        activity.lane = lane & 0xffffff;
        activity.kindNumber = static_cast<std::uint8_t>(kind);
        m_data.activities.push_back(activity);
        return &m_data.activities.back();
    }

    bool read(NsightTable& table)
    {
        if (table.row() == 0)
            m_tablesRead.insert(table.name());
        if (!table.next())
            return false;
        ++m_data.report.read;
        return true;
    }

    std::uint32_t detail(const ActivityDetail& detail)
    {
        m_data.details.push_back(detail);
        return static_cast<std::uint32_t>(m_data.details.size() - 1);
    }

    void readCalls()
    {
        for (const char* name : {"CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_DRIVER"}) {
            NsightTable table(m_database, name, {"start", "end", "globalTid", "correlationId", "nameId"});
            while (read(table))
                if (Activity* a = add(table, m_lanes.thread(table.integerOr(2, 0)), ActivityKind::Runtime,
                                      m_lanes.nameId(table.integer(4)))) {
                    a->correlation = m_lanes.correlation(table.integerOr(2, 0), table.integerOr(3, 0));
                    m_calls.emplace_back(static_cast<std::uint32_t>(m_data.activities.size() - 1));
                }
        }
    }

    void readKernels()
    {
        NsightTable table(m_database, "CUPTI_ACTIVITY_KIND_KERNEL",
                          {"start", "end", "deviceId", "streamId", "correlationId", "globalPid",
                           "shortName|demangledName|mangledName|nameId", "graphNodeId"});
        while (read(table)) {
            const std::uint32_t name =
                table.text(6) ? m_data.strings.id(*table.text(6)) : m_lanes.nameId(table.integer(6));
            Activity* a = addOnDevice(table, ActivityKind::Kernel, name);
            if (a && table.integer(7)) {
                ActivityDetail graph;
                graph.graphNode = *table.integer(7);
                a->detail = detail(graph);
            }
        }
    }

    Activity* addOnDevice(const NsightTable& table, ActivityKind kind, std::uint32_t name)
    {
        const std::int64_t process = table.integerOr(5, 0);
        Activity* a = add(table, m_lanes.stream(process, table.integerOr(2, 0), table.integerOr(3, 0)), kind, name);
        if (a)
            a->correlation = m_lanes.correlation(process, table.integerOr(4, 0));
        return a;
    }

    void readCopies()
    {
        NsightTable table(
            m_database, "CUPTI_ACTIVITY_KIND_MEMCPY",
            {"start", "end", "deviceId", "streamId", "correlationId", "globalPid", "bytes", "copyKind", "graphNodeId"});
        static constexpr const char* names[] = {
            "copy",           "host to device",  "device to host",  "host to array",    "array to host",
            "array to array", "array to device", "device to array", "device to device", "host to host",
            "peer to peer"};
        while (read(table)) {
            const std::int64_t kind = table.integerOr(7, 0);
            ActivityDetail copy;
            copy.bytes = table.integerOr(6, -1);
            copy.copyKind = kind > 0 && kind <= 10 ? static_cast<std::int32_t>(kind) : 0;
            copy.graphNode = table.integerOr(8, 0);
            if (Activity* a = addOnDevice(table, ActivityKind::Memcpy, m_data.strings.id(names[copy.copyKind])))
                a->detail = detail(copy);
        }
    }

    void readSets()
    {
        NsightTable table(m_database, "CUPTI_ACTIVITY_KIND_MEMSET",
                          {"start", "end", "deviceId", "streamId", "correlationId", "globalPid", "bytes"});
        while (read(table)) {
            ActivityDetail set;
            set.bytes = table.integerOr(6, -1);
            if (Activity* a = addOnDevice(table, ActivityKind::Memset, m_data.strings.id("memory set")))
                a->detail = detail(set);
        }
    }

    void readSyncs()
    {
        NsightTable table(m_database, "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
                          {"start", "end", "deviceId", "streamId", "correlationId", "globalPid", "syncType"});
        static constexpr const char* names[] = {"synchronization", "event synchronize", "stream waits for event",
                                                "stream synchronize", "context synchronize"};
        while (read(table)) {
            const std::int64_t type = table.integerOr(6, 0);
            addOnDevice(table, ActivityKind::Synchronization,
                        m_data.strings.id(names[type > 0 && type <= 4 ? type : 0]));
        }
    }

    void readNvtx()
    {
        NsightTable domains(m_database, "NVTX_EVENTS", {"eventType", "domainId", "globalTid", "text", "textId"});
        std::map<std::pair<std::int64_t, std::int64_t>, std::string> nameOfDomain; // by (process, domain)
        while (domains.next())
            if (domains.integer(0) == DomainCreate)
                nameOfDomain[{NsightLanes::processOf(domains.integerOr(2, 0)), domains.integerOr(1, 0)}] =
                    domains.text(3).value_or(m_lanes.name(domains.integerOr(4, 0)));
        NsightTable table(m_database, "NVTX_EVENTS",
                          {"start", "end", "eventType", "text", "textId", "globalTid", "domainId", "binaryData"});
        while (read(table)) {
            const std::int64_t type = table.integerOr(2, 0);
            if (type != Mark && type != PushPop && type != StartEnd && type != OldRange)
                continue; // names of categories, threads and domains
            const std::int64_t thread = table.integerOr(5, 0);
            const std::uint32_t name =
                table.text(3) ? m_data.strings.id(*table.text(3)) : m_lanes.nameId(table.integer(4));
            Activity* a =
                add(table, m_lanes.thread(thread), type == Mark ? ActivityKind::Mark : ActivityKind::Range, name, true);
            if (!a)
                continue;
            const auto index = static_cast<std::uint32_t>(m_data.activities.size() - 1);
            if (type != Mark && !table.integer(1))
                m_neverEnded.push_back(index);
            const std::string& text = m_data.strings.text(name);
            const auto domain = nameOfDomain.find({NsightLanes::processOf(thread), table.integerOr(6, 0)});
            if (type != Mark && text.starts_with("nccl") && text.size() > 4
                && (domain == nameOfDomain.end() || domain->second == "NCCL"))
                takeNcclCall(table, thread, index, text);
        }
    }

    void takeNcclCall(const NsightTable& table, std::int64_t thread, std::uint32_t index, const std::string& name)
    {
        const std::string payload = table.blob(7);
        const auto call = payload.empty() ? std::nullopt : m_payloads.decode(payload);
        if (!call) {
            if (!payload.empty())
                m_data.report.repair("NCCL calls whose payload is not described; their size and peer are missing",
                                     example(table));
            return;
        }
        const std::int64_t process = NsightLanes::processOf(thread);
        if (call->rank && call->ranks) { // keeps the rank in the largest communicator
            auto& known = m_rankOfProcess[process];
            if (*call->ranks > known.second)
                known = {*call->rank, *call->ranks};
            if (call->communicator)
                m_processOf[{*call->communicator, *call->rank}] = process;
        }
        ActivityDetail d;
        d.collective = m_data.strings.id(collectiveOf(name));
        d.bytes = call->bytes.value_or(-1);
        d.peer = call->peer.value_or(-1);
        d.communicator = call->communicator.value_or(0);
        m_data.activities[index].detail = detail(d);
        m_ncclRanges.push_back(index);
    }

    /// Gives NCCL kernels the details of the call whose range contains their launch, on the same thread.
    void tellKernelsTheirCall()
    {
        std::unordered_map<std::uint64_t, std::uint32_t> callOf; // by (process of the lane, correlation)
        const auto key = [&](const Activity& a) {
            return (static_cast<std::uint64_t>(m_data.lanes[a.lane].process) << 32) | a.correlation;
        };
        if (m_ncclRanges.empty())
            return;
        for (const std::uint32_t call : m_calls)
            callOf.emplace(key(m_data.activities[call]), call);
        std::sort(m_ncclRanges.begin(), m_ncclRanges.end(), [&](std::uint32_t a, std::uint32_t b) {
            const Activity &x = m_data.activities[a], &y = m_data.activities[b];
            return x.lane != y.lane ? x.lane < y.lane : x.start < y.start;
        });
        for (Activity& kernel : m_data.activities) {
            if (kernel.kind() != ActivityKind::Kernel || kernel.correlation == 0
                || !m_data.strings.text(kernel.name).starts_with("nccl"))
                continue;
            const auto call = callOf.find(key(kernel));
            if (call == callOf.end())
                continue;
            const Activity& launch = m_data.activities[call->second];
            const std::pair<std::uint32_t, Nanoseconds> at(std::uint32_t{launch.lane}, launch.start);
            auto range =
                std::upper_bound(m_ncclRanges.begin(), m_ncclRanges.end(), at, [&](const auto& value, std::uint32_t r) {
                    const Activity& other = m_data.activities[r];
                    return value < std::pair<std::uint32_t, Nanoseconds>(std::uint32_t{other.lane}, other.start);
                });
            if (range == m_ncclRanges.begin())
                continue;
            const Activity& found = m_data.activities[*--range];
            if (found.lane == launch.lane && launch.start <= found.end)
                kernel.detail = found.detail;
        }
    }

    /// Replaces peers within a communicator by the job's ranks, where the communicator's start was recorded.
    void tellPeersByTheirRank()
    {
        std::map<std::int64_t, int> rankOf; // by process
        for (const TraceLane& lane : m_data.lanes)
            rankOf.emplace(lane.process, lane.rank);
        for (ActivityDetail& detail : m_data.details) {
            const auto process = m_processOf.find({detail.communicator, detail.peer});
            if (detail.peer < 0 || process == m_processOf.end())
                continue;
            if (const auto rank = rankOf.find(process->second); rank != rankOf.end())
                detail.peer = rank->second;
        }
    }

    void readSmaller()
    {
        NsightTable overhead(m_database, "PROFILER_OVERHEAD", {"start", "end", "globalTid", "nameId"});
        while (read(overhead))
            add(overhead, m_lanes.thread(overhead.integerOr(2, 0)), ActivityKind::Overhead,
                m_lanes.nameId(overhead.integer(3)));
        NsightTable system(m_database, "OSRT_API", {"start", "end", "globalTid", "nameId"});
        while (read(system))
            add(system, m_lanes.thread(system.integerOr(2, 0)), ActivityKind::Other, m_lanes.nameId(system.integer(3)));
    }

    void readMetrics()
    {
        std::map<std::pair<std::int64_t, std::int64_t>, std::size_t> counters; // by (typeId, metricId)
        NsightTable names(m_database, "TARGET_INFO_GPU_METRICS", {"typeId", "metricId", "metricName"});
        std::map<std::pair<std::int64_t, std::int64_t>, std::string> nameOf;
        while (names.next())
            nameOf[{names.integerOr(0, 0), names.integerOr(1, 0)}] =
                names.text(2).value_or(m_lanes.name(names.integerOr(2, 0)));
        NsightTable table(m_database, "GPU_METRICS", {"timestamp|start", "typeId", "metricId", "value"});
        while (read(table)) {
            const std::pair key(table.integerOr(1, 0), table.integerOr(2, 0));
            const auto time = table.integer(0);
            const auto value = table.number(3);
            if (!time || !value || *time < 0) {
                m_data.report.lose("metric samples without a time or a value", example(table));
                continue;
            }
            const auto [found, isNew] = counters.try_emplace(key, m_data.counters.size());
            if (isNew) {
                TraceCounter counter;
                counter.device = static_cast<int>(key.first & 0xff); // the lowest byte is the GPU's number
                counter.name = nameOf.contains(key) ? nameOf[key] : "metric " + std::to_string(key.second);
                m_data.counters.push_back(std::move(counter));
            }
            m_data.counters[found->second].time.push_back(*time);
            m_data.counters[found->second].value.push_back(*value);
        }
    }

    void readMemory()
    {
        std::map<std::int64_t, bool> allocates{{0, true}, {1, false}};
        NsightTable operations(m_database, "ENUM_CUDA_DEV_MEM_EVENT_OPER", {"id", "name", "label"});
        while (operations.next()) {
            std::string name = operations.text(1).value_or(operations.text(2).value_or(""));
            std::transform(name.begin(), name.end(), name.begin(),
                           [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
            allocates[operations.integerOr(0, 0)] =
                name.find("dealloc") == std::string::npos && name.find("free") == std::string::npos;
        }
        NsightTable table(m_database, "CUDA_GPU_MEMORY_USAGE_EVENTS",
                          {"start", "globalPid", "deviceId", "bytes", "memoryOperationType"});
        struct Event {
            Nanoseconds time;
            double bytes;
        };
        std::map<std::pair<std::int64_t, std::int64_t>, std::vector<Event>> events;
        while (read(table)) {
            const auto time = table.integer(0);
            const auto bytes = table.number(3);
            if (!time || !bytes) {
                m_data.report.lose("allocations without a time or a size", example(table));
                continue;
            }
            events[{table.integerOr(1, 0), table.integerOr(2, 0)}].push_back(
                {std::max<Nanoseconds>(0, *time), allocates[table.integerOr(4, 0)] ? *bytes : -*bytes});
        }
        for (auto& [key, list] : events) {
            std::stable_sort(list.begin(), list.end(), [](const Event& a, const Event& b) { return a.time < b.time; });
            TraceCounter counter;
            counter.device = static_cast<int>(key.second & 0xffff);
            counter.name = "allocated bytes";
            double total = 0;
            for (const Event& event : list) {
                total += event.bytes;
                counter.time.push_back(event.time);
                counter.value.push_back(total);
            }
            m_data.counters.push_back(std::move(counter));
        }
    }

    void closeOpenRanges()
    {
        Nanoseconds last = 0;
        for (const Activity& activity : m_data.activities)
            last = std::max(last, activity.end);
        for (const std::uint32_t i : m_neverEnded) {
            m_data.activities[i].end = std::max(last, m_data.activities[i].start);
            m_data.report.repair("ranges that were never ended; they last until the recording ends",
                                 m_data.strings.text(m_data.activities[i].name));
        }
    }

    SQLite::Database& m_database;
    std::string m_path;
    TraceData m_data;
    std::set<std::string> m_tablesRead;
    NsightLanes m_lanes;
    NcclPayloads m_payloads;
    std::vector<std::uint32_t> m_calls, m_ncclRanges, m_neverEnded;             ///< activities
    std::map<std::int64_t, std::pair<int, int>> m_rankOfProcess;                ///< rank and number of ranks
    std::map<std::pair<std::uint64_t, std::int32_t>, std::int64_t> m_processOf; ///< by communicator and rank in it
};

} // namespace

TraceData importNsight(const std::string& path, const WorkProgress& progress)
try {
    SQLite::Database database = openReadOnly(path);
    if (database.execAndGet("PRAGMA application_id").getInt() == traceschema::applicationId)
        throw Error(path, "this is a trace of Pipewright already", "open it, or compare a design with it");
    if (!database.tableExists("StringIds") && !database.tableExists("META_DATA_EXPORT"))
        throw Error(path, "this is no export of Nsight Systems: a database of another program",
                    "make one with `nsys export --type sqlite report.nsys-rep`");
    return NsightImporter(database, path).run(progress);
} catch (const SQLite::Exception& error) {
    rethrowIfLocked(path, error);
    throw Error(path, std::string("cannot be read: ") + error.what(),
                "export it again with `nsys export --type sqlite`");
}

} // namespace pipewright
