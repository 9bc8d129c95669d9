// SPDX-License-Identifier: GPL-3.0-or-later
#include "traces/store/recordedactivities.h"

#include "core/base/diagnostic.h"
#include "traces/store/database.h"
#include "traces/store/kernelgroups.h"

#include <SQLiteCpp/SQLiteCpp.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <utility>

namespace pipewright {

namespace {

struct ActivityTable {
    const char* name;
    const char* nameColumn;
    ActivityKind kind;
    bool correlated;
};
constexpr ActivityTable activityTables[] = {
    {"CUPTI_ACTIVITY_KIND_KERNEL", "demangledName", ActivityKind::Kernel, true},
    {"CUPTI_ACTIVITY_KIND_MEMCPY", "nameId", ActivityKind::Memcpy, true},
    {"CUPTI_ACTIVITY_KIND_MEMSET", "nameId", ActivityKind::Memset, true},
    {"CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", "nameId", ActivityKind::Synchronization, false},
    {"CUPTI_ACTIVITY_KIND_RUNTIME", "nameId", ActivityKind::Runtime, true},
    {"PROFILER_OVERHEAD", "nameId", ActivityKind::Overhead, false},
    {"SLICES", "nameId", ActivityKind::Operator, false},
};

class Reading {
public:
    Reading(SQLite::Database& database, const std::string& path) : m_database(database), m_path(path)
    {
        m_data.tool = "Pipewright";
        m_data.source = path;
        const auto first = [&](const char* query) {
            SQLite::Statement statement(m_database, query);
            return statement.executeStep() && !statement.getColumn(0).isNull()
                       ? std::optional(storedTime(statement.getColumn(0)))
                       : std::nullopt;
        };
        // A killed run may have records and no finished step.
        constexpr Nanoseconds never = std::numeric_limits<Nanoseconds>::max();
        m_origin = std::min(first("SELECT min(start) FROM STEPS").value_or(never),
                            first("SELECT min(start) FROM RECORDS").value_or(never));
        if (m_origin == never)
            m_origin = 0;
        if (const auto clock = first("SELECT value FROM META WHERE name = 'utcEpochNs'"))
            m_data.originEpochNs = *clock + m_origin;
    }

    TraceData take(std::vector<std::string>& deviceNames, const WorkProgress& progress)
    {
        readDevices(deviceNames);
        readTasks();
        progress.at(0.1, m_path);
        readSteps();
        readRecords();
        progress.at(0.4, m_path);
        if (m_database.tableExists("LANES"))
            readGpu();
        progress.at(0.8, m_path);
        readMemory();
        return std::move(m_data);
    }

private:
    /// Refuses damaged files: lane and name numbers must be in range.
    [[noreturn]] void damaged(const std::string& what) const { throw Error(m_path, "the trace is damaged: " + what); }

    std::uint32_t addLane(TraceLane lane)
    {
        m_data.lanes.push_back(std::move(lane));
        return static_cast<std::uint32_t>(m_data.lanes.size() - 1);
    }

    void add(std::uint32_t lane, ActivityKind kind, std::uint32_t name, Nanoseconds start, Nanoseconds end,
             std::uint32_t correlation = 0)
    {
        Activity activity;
        activity.start = std::max<Nanoseconds>(0, start - m_origin); // calls are made before their step begins
        activity.end = std::max(activity.start, end - m_origin);
        activity.name = name;
        activity.correlation = correlation;
        activity.lane = lane & 0xffffff;
        activity.kindNumber = static_cast<std::uint8_t>(kind);
        m_data.activities.push_back(activity);
    }

    void readDevices(std::vector<std::string>& deviceNames)
    {
        SQLite::Statement query(m_database, "SELECT name FROM DEVICES ORDER BY deviceId");
        while (query.executeStep())
            deviceNames.push_back(query.getColumn(0).getString());
        for (std::size_t d = 0; d < deviceNames.size(); ++d)
            for (const bool transfers : {false, true}) {
                TraceLane lane;
                lane.kind = TraceLane::Kind::Stream;
                lane.device = static_cast<int>(d);
                lane.thread = transfers ? -1 : -2;
                lane.name = transfers ? "arriving transfers" : "blocks";
                lane.processName = deviceNames[d];
                lane.sortIndex = transfers ? -1 : -2;
                (transfers ? m_transferLanes : m_blockLanes).push_back(addLane(lane));
            }
    }

    void readTasks()
    {
        SQLite::Statement query(m_database, "SELECT taskId, kind = 'transfer', label FROM TASKS ORDER BY taskId");
        while (query.executeStep()) {
            if (query.getColumn(0).getInt64() != static_cast<std::int64_t>(m_isTransfer.size()))
                damaged("tasks are not numbered");
            m_isTransfer.push_back(query.getColumn(1).getInt() != 0);
            m_labels.push_back(m_data.strings.id(query.getColumn(2).getString()));
        }
    }

    void readSteps()
    {
        TraceLane lane;
        lane.name = "steps";
        lane.processName = "run";
        lane.process = -1;
        const std::uint32_t steps = addLane(lane);
        SQLite::Statement query(m_database, "SELECT step, start, end FROM STEPS ORDER BY step");
        while (query.executeStep())
            add(steps, ActivityKind::Range, m_data.strings.id("step " + std::to_string(query.getColumn(0).getInt())),
                storedTime(query.getColumn(1)), storedTime(query.getColumn(2)));
    }

    void readRecords()
    {
        SQLite::Statement query(m_database, "SELECT taskId, deviceId, start, end FROM RECORDS");
        while (query.executeStep()) {
            const std::int64_t task = query.getColumn(0).getInt64(), device = query.getColumn(1).getInt64();
            if (task < 0 || task >= static_cast<std::int64_t>(m_labels.size()) || device < 0
                || device >= static_cast<std::int64_t>(m_blockLanes.size()))
                damaged("a record of an unknown task or device");
            const auto t = static_cast<std::size_t>(task), d = static_cast<std::size_t>(device);
            add(m_isTransfer[t] ? m_transferLanes[d] : m_blockLanes[d], ActivityKind::GpuRange, m_labels[t],
                storedTime(query.getColumn(2)), storedTime(query.getColumn(3)));
        }
    }

    void readGpu()
    {
        std::vector<std::uint32_t> names;
        SQLite::Statement texts(m_database, "SELECT value FROM StringIds ORDER BY id");
        while (texts.executeStep())
            names.push_back(m_data.strings.id(texts.getColumn(0).getString()));
        std::vector<std::uint32_t> lanes;
        SQLite::Statement query(m_database, "SELECT kind, rank, threadId, deviceId, name, sortIndex, taskDeviceId, "
                                            "processName FROM LANES ORDER BY laneId");
        while (query.executeStep()) {
            TraceLane lane;
            lane.kind = query.getColumn(0).getString() == "stream" ? TraceLane::Kind::Stream : TraceLane::Kind::Thread;
            lane.rank = 0;
            lane.process = query.getColumn(1).getInt(); // a process of the run is what makes calls
            lane.thread = query.getColumn(2).getInt64();
            lane.name = query.getColumn(4).getString();
            lane.sortIndex = query.getColumn(5).getInt64();
            lane.processName = query.getColumn(7).getString();
            // Under the device of the design, where it is known, else under the first one on that GPU.
            if (lane.kind == TraceLane::Kind::Stream) {
                const int gpu = query.getColumn(3).getInt();
                const std::pair place(static_cast<int>(lane.process), gpu);
                if (!query.getColumn(6).isNull()) {
                    lane.device = query.getColumn(6).getInt();
                    m_deviceOnGpu.emplace(place, lane.device);
                } else {
                    const auto known = m_deviceOnGpu.find(place);
                    lane.device = known == m_deviceOnGpu.end() ? gpu : known->second;
                }
                if (lane.device < 0 || lane.device >= static_cast<int>(m_blockLanes.size()))
                    damaged("a stream of an unknown device");
                lane.name += ", " + lane.processName; // its GPU
            }
            lanes.push_back(addLane(std::move(lane)));
        }
        for (const ActivityTable& table : activityTables)
            if (m_database.tableExists(table.name))
                readGpuTable(table, names, lanes);
        nameCommunication();
    }

    void readGpuTable(const ActivityTable& table, const std::vector<std::uint32_t>& names,
                      const std::vector<std::uint32_t>& lanes)
    {
        SQLite::Statement query(m_database, std::string("SELECT start, end, ") + table.nameColumn + ", laneId, "
                                                + (table.correlated ? "correlationId" : "NULL") + " FROM "
                                                + table.name);
        while (query.executeStep()) {
            const std::int64_t name = query.getColumn(2).getInt64(), lane = query.getColumn(3).getInt64();
            if (name < 0 || name >= static_cast<std::int64_t>(names.size()) || lane < 0
                || lane >= static_cast<std::int64_t>(lanes.size()))
                damaged("a record of an unknown name or lane");
            add(lanes[lane], table.kind, names[name], storedTime(query.getColumn(0)), storedTime(query.getColumn(1)),
                query.getColumn(4).getUInt());
        }
    }

    /// Streams whose kernels all communicate.
    void nameCommunication()
    {
        std::vector<std::uint8_t> communicates(m_data.strings.size());
        for (std::size_t name = 0; name < communicates.size(); ++name)
            communicates[name] =
                KernelGroups::standard().isCommunication(m_data.strings.text(static_cast<std::uint32_t>(name)));
        std::vector<int> others(m_data.lanes.size(), 0), own(m_data.lanes.size(), 0);
        for (const Activity& a : m_data.activities)
            if (a.kind() == ActivityKind::Kernel)
                ++(communicates[a.name] ? own : others)[a.lane];
        for (std::size_t lane = 0; lane < m_data.lanes.size(); ++lane)
            m_data.lanes[lane].communication = own[lane] > 0 && others[lane] == 0;
    }

    void readMemory()
    {
        SQLite::Statement query(m_database,
                                "SELECT deviceId, start, bytes FROM MEMORY ORDER BY deviceId, start, rowid");
        int last = -1;
        while (query.executeStep()) {
            if (const int device = query.getColumn(0).getInt(); device != last || m_data.counters.empty()) {
                last = device;
                m_data.counters.push_back({0, device, "memory (bytes)", {}, {}});
            }
            m_data.counters.back().time.push_back(storedTime(query.getColumn(1)) - m_origin);
            m_data.counters.back().value.push_back(static_cast<double>(query.getColumn(2).getInt64()));
        }
    }

    SQLite::Database& m_database;
    const std::string m_path;
    Nanoseconds m_origin = 0;
    TraceData m_data;
    std::vector<std::uint32_t> m_blockLanes, m_transferLanes, m_labels; ///< by device, by device, by task
    std::vector<bool> m_isTransfer;                                     ///< by task
    std::map<std::pair<int, int>, int> m_deviceOnGpu;                   ///< by process and GPU: the first seen
};

} // namespace

StoredActivities recordedActivities(SQLite::Database& database, const std::string& path, const WorkProgress& progress)
{
    StoredActivities stored;
    TraceData data = Reading(database, path).take(stored.deviceNames, progress);
    const TrackLayout layout = layOut(data);
    for (const TrackLayout::Row& row : layout.rows) {
        Track& track = stored.tracks.emplace_back();
        track.lane = row.lane;
        track.row = row.row;
        const bool correlated = std::any_of(row.activities.begin(), row.activities.end(),
                                            [&](std::uint32_t i) { return data.activities[i].correlation != 0; });
        for (const std::uint32_t i : row.activities) {
            const Activity& a = data.activities[i];
            track.start.push_back(a.start);
            track.end.push_back(a.end);
            track.name.push_back(a.name);
            track.kind.push_back(a.kind());
            track.record.push_back(0);
            if (correlated)
                track.correlation.push_back(a.correlation);
        }
        track.index();
    }
    stored.tool = data.tool;
    stored.source = data.source;
    stored.originEpochNs = data.originEpochNs;
    stored.lanes = std::move(data.lanes);
    stored.counters = std::move(data.counters);
    for (std::size_t i = 0; i < data.strings.size(); ++i)
        stored.strings.push_back(data.strings.text(static_cast<std::uint32_t>(i)));
    progress.at(1, path);
    return stored;
}

} // namespace pipewright
