// SPDX-License-Identifier: GPL-3.0-or-later
// Reads packed chunks per track and rebuilds the levels of detail. O(slices).
#include "traces/store/activitystore.h"

#include "core/base/parallelfor.h"
#include "traces/store/database.h"
#include "traces/store/recordedactivities.h"
#include "traces/store/schema.h"

#include <SQLiteCpp/SQLiteCpp.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>

namespace pipewright {

namespace {

bool hasTable(SQLite::Database& database, const char* name)
{
    return database.tableExists(name);
}

std::string metaText(SQLite::Database& database, const char* name)
{
    SQLite::Statement query(database, "SELECT value FROM META WHERE name = ?1");
    query.bind(1, name);
    return query.executeStep() && !query.getColumn(0).isNull() ? query.getColumn(0).getString() : std::string();
}

std::int64_t metaNumber(SQLite::Database& database, const char* name)
{
    SQLite::Statement query(database, "SELECT value FROM META WHERE name = ?1");
    query.bind(1, name);
    return query.executeStep() ? query.getColumn(0).getInt64() : 0;
}

/// Appends a packed array; throws when it is not `count` values long.
template<typename Value>
void append(const SQLite::Column& blob, std::size_t count, std::vector<Value>& values, const std::string& path)
{
    if (static_cast<std::size_t>(blob.getBytes()) != count * sizeof(Value))
        throw Error(path, "the trace is damaged: a chunk of slices has the wrong length", "import it again");
    const std::size_t before = values.size();
    values.resize(before + count);
    if (count > 0)
        std::memcpy(values.data() + before, blob.getBlob(), count * sizeof(Value));
}

template<typename Duration>
void appendEnds(const SQLite::Column& blob, std::size_t count, Track& track, const std::string& path)
{
    std::vector<Duration> durations;
    append(blob, count, durations, path);
    const std::size_t before = track.end.size();
    track.end.resize(before + count);
    for (std::size_t i = 0; i < count; ++i)
        track.end[before + i] = track.start[before + i] + static_cast<Nanoseconds>(durations[i]);
}

void appendChunk(SQLite::Statement& query, Track& track, const std::string& path)
{
    const std::int64_t stated = query.getColumn(3).getInt64();
    if (stated < 0)
        throw Error(path, "the trace is damaged: a chunk of slices has the wrong length", "import it again");
    const auto count = static_cast<std::size_t>(stated);
    append(query.getColumn(4), count, track.start, path);
    if (static_cast<std::size_t>(query.getColumn(5).getBytes()) == count * sizeof(std::uint32_t))
        appendEnds<std::uint32_t>(query.getColumn(5), count, track, path);
    else
        appendEnds<Nanoseconds>(query.getColumn(5), count, track, path);
    append(query.getColumn(6), count, track.name, path);
    std::vector<std::uint8_t> kinds;
    append(query.getColumn(7), count, kinds, path);
    const std::size_t before = track.kind.size();
    track.kind.resize(before + count);
    for (std::size_t i = 0; i < count; ++i)
        track.kind[before + i] = kinds[i] < activityKinds ? static_cast<ActivityKind>(kinds[i]) : ActivityKind::Other;
    append(query.getColumn(8), count, track.record, path);
    if (!query.getColumn(9).isNull()) {
        track.correlation.resize(track.start.size() - count, 0);
        append(query.getColumn(9), count, track.correlation, path);
    } else if (!track.correlation.empty()) {
        track.correlation.resize(track.start.size(), 0);
    }
}

void checkTrack(const Track& track, const StoredActivities& stored, const std::string& path)
{
    bool sound = track.lane < stored.lanes.size();
    for (std::size_t i = 0; sound && i < track.size(); ++i)
        sound = track.end[i] >= track.start[i] && (i == 0 || track.end[i - 1] <= track.start[i])
                && track.name[i] < stored.strings.size();
    if (!sound)
        throw Error(path, "the trace is damaged: slices out of order, or of a lane or name that does not exist",
                    "import it again");
}

/// One track from its chunks; `chunkDone` after each.
template<typename Done>
void readTrack(SQLite::Statement& query, Track& track, std::size_t slices, const StoredActivities& stored,
               const std::string& path, Done chunkDone)
{
    track.start.reserve(slices);
    track.end.reserve(slices);
    track.name.reserve(slices);
    track.kind.reserve(slices);
    track.record.reserve(slices);
    query.bind(1, track.lane);
    query.bind(2, track.row);
    while (query.executeStep()) {
        appendChunk(query, track, path);
        chunkDone();
    }
    query.reset();
    checkTrack(track, stored, path);
    track.index();
}

/// Tracks are independent, so several threads read them, each with its own connection; opening a connection takes as
/// long as reading several chunks.
void readTracks(SQLite::Database& database, StoredActivities& stored, const std::string& path,
                const WorkProgress& progress)
{
    const double chunks = database.execAndGet("SELECT count(1) FROM SLICE_CHUNKS").getDouble();
    std::vector<std::size_t> slices;
    SQLite::Statement totals(
        database, "SELECT laneId, row, sum(count) FROM SLICE_CHUNKS GROUP BY laneId, row ORDER BY laneId, row");
    while (totals.executeStep()) {
        Track& track = stored.tracks.emplace_back();
        track.lane = totals.getColumn(0).getUInt();
        track.row = totals.getColumn(1).getInt();
        slices.push_back(
            static_cast<std::size_t>(std::clamp<std::int64_t>(totals.getColumn(2).getInt64(), 0, 1'000'000'000)));
    }
    std::atomic<std::size_t> next{0}, done{0};
    std::atomic<bool> failed{false};
    const auto readSome = [&](SQLite::Database& from, bool reports) {
        SQLite::Statement query(from, "SELECT * FROM SLICE_CHUNKS WHERE laneId = ?1 AND row = ?2 ORDER BY chunk");
        for (std::size_t i = next++; i < stored.tracks.size() && !failed; i = next++)
            readTrack(query, stored.tracks[i], slices[i], stored, path, [&] {
                const double share = static_cast<double>(++done) / chunks;
                if (reports)
                    progress.at(std::min(share, 1.0), path);
            });
    };
    constexpr double chunksPerThread = 16;
    const std::size_t most =
        std::min<std::size_t>({4, stored.tracks.size(), std::thread::hardware_concurrency(),
                               static_cast<std::size_t>(std::clamp(chunks / chunksPerThread, 1.0, 4.0))});
    parallelFor(std::max<std::size_t>(1, most), [&](std::size_t worker) {
        try {
            if (worker == 0) { // the caller's thread, which reports progress
                readSome(database, true);
            } else {
                SQLite::Database own = openTraceDatabase(path);
                readSome(own, false);
            }
        } catch (...) {
            failed = true; // stops the other threads
            throw;
        }
    });
}

void readLanes(SQLite::Database& database, StoredActivities& stored)
{
    SQLite::Statement query(database, "SELECT kind, rank, processId, threadId, deviceId, name, processName, sortIndex, "
                                      "communication FROM LANES ORDER BY laneId");
    while (query.executeStep()) {
        TraceLane lane;
        lane.kind = query.getColumn(0).getString() == "stream" ? TraceLane::Kind::Stream : TraceLane::Kind::Thread;
        lane.rank = query.getColumn(1).getInt();
        lane.process = query.getColumn(2).getInt64();
        lane.thread = query.getColumn(3).getInt64();
        lane.device = query.getColumn(4).isNull() ? -1 : query.getColumn(4).getInt();
        lane.name = query.getColumn(5).getString();
        lane.processName = query.getColumn(6).getString();
        lane.sortIndex = query.getColumn(7).getInt64();
        lane.communication = query.getColumn(8).getInt() != 0;
        stored.lanes.push_back(std::move(lane));
    }
}

void readSmallTables(SQLite::Database& database, StoredActivities& stored)
{
    SQLite::Statement names(database, "SELECT value FROM StringIds ORDER BY id");
    while (names.executeStep())
        stored.strings.push_back(names.getColumn(0).getString());
    SQLite::Statement skipped(database, "SELECT reason, count, lost, example FROM SKIPPED");
    while (skipped.executeStep()) {
        const std::string reason = skipped.getColumn(0).getString(), example = skipped.getColumn(3).getString();
        const std::int64_t count = skipped.getColumn(1).getInt64();
        if (const int lost = skipped.getColumn(2).getInt(); lost == traceschema::warned)
            stored.report.warn(reason, example);
        else
            lost != 0 ? stored.report.lose(reason, example, count) : stored.report.repair(reason, example, count);
    }
    stored.report.read = metaNumber(database, "recordsRead");
    stored.report.kept = metaNumber(database, "recordsKept");
    SQLite::Statement clocks(database, "SELECT rank, offset, residual, events, method FROM CLOCKS ORDER BY rank");
    while (clocks.executeStep())
        stored.clocks.push_back({clocks.getColumn(0).getInt(), clocks.getColumn(1).getInt64(),
                                 clocks.getColumn(2).getInt64(), clocks.getColumn(3).getInt64(),
                                 clocks.getColumn(4).getString()});
    if (hasTable(database, "COUNTERS")) {
        SQLite::Statement query(
            database, "SELECT counterId, rank, deviceId, name, start, value FROM COUNTERS ORDER BY counterId, start");
        std::int64_t last = -1;
        while (query.executeStep()) {
            if (query.getColumn(0).getInt64() != last || stored.counters.empty()) {
                last = query.getColumn(0).getInt64();
                stored.counters.push_back({query.getColumn(1).getInt(),
                                           query.getColumn(2).isNull() ? -1 : query.getColumn(2).getInt(),
                                           query.getColumn(3).getString(),
                                           {},
                                           {}});
            }
            stored.counters.back().time.push_back(storedTime(query.getColumn(4)));
            stored.counters.back().value.push_back(query.getColumn(5).getDouble());
        }
    }
    if (hasTable(database, "FLOWS")) {
        SQLite::Statement query(database, "SELECT startLaneId, start, endLaneId, end FROM FLOWS");
        while (query.executeStep())
            stored.flows.push_back({query.getColumn(0).getUInt(), query.getColumn(2).getUInt(),
                                    query.getColumn(1).getInt64(), query.getColumn(3).getInt64()});
    }
}

/// From kernels only: host calls do not show when the communication ran.
LinkTransfers readTransfers(SQLite::Database& database, const StoredActivities& stored)
{
    std::vector<NcclKernel> communications;
    if (!hasTable(database, "COMMUNICATIONS"))
        return {};
    SQLite::Statement query(database, "SELECT laneId, start, end, collectiveId, groupId, communicator, bytes, peer "
                                      "FROM COMMUNICATIONS");
    const auto nameOf = [&](const SQLite::Column& column) {
        const auto id = static_cast<std::size_t>(column.getInt64());
        return !column.isNull() && id < stored.strings.size() ? stored.strings[id] : std::string();
    };
    while (query.executeStep()) {
        const auto lane = static_cast<std::size_t>(query.getColumn(0).getInt64());
        if (lane >= stored.lanes.size() || stored.lanes[lane].kind != TraceLane::Kind::Stream)
            continue;
        NcclKernel& c = communications.emplace_back();
        c.rank = stored.lanes[lane].rank;
        c.device = stored.lanes[lane].device;
        c.start = storedTime(query.getColumn(1));
        c.end = storedTime(query.getColumn(2));
        c.collective = nameOf(query.getColumn(3));
        c.group = nameOf(query.getColumn(4)) + "/" + query.getColumn(5).getString();
        c.bytes = query.getColumn(6).isNull() ? -1 : query.getColumn(6).getInt64();
        c.peer = query.getColumn(7).isNull() ? -1 : query.getColumn(7).getInt();
    }
    return pairTransfers(std::move(communications));
}

} // namespace

std::size_t StoredActivities::slices() const
{
    std::size_t total = 0;
    for (const Track& track : tracks)
        total += track.size();
    return total;
}

StoredActivities readActivities(const std::string& path, const WorkProgress& progress)
try {
    SQLite::Database database = openTraceDatabase(path);
    if (!hasTable(database, "SLICE_CHUNKS"))
        return recordedActivities(database, path, progress);
    StoredActivities stored;
    stored.tool = metaText(database, "tool");
    stored.source = metaText(database, "source");
    stored.originEpochNs = metaNumber(database, "utcEpochNs");
    stored.ranks = static_cast<int>(metaNumber(database, "ranks"));
    readLanes(database, stored);
    readSmallTables(database, stored);
    stored.transfers = readTransfers(database, stored);
    readTracks(database, stored, path, progress);
    return stored;
} catch (const SQLite::Exception& error) {
    rethrowTraceError(path, error);
}

bool holdsActivities(const std::string& path)
try {
    SQLite::Database database = openTraceDatabase(path);
    return hasTable(database, "SLICE_CHUNKS");
} catch (const SQLite::Exception& error) {
    rethrowIfLocked(path, error);
    return false;
} catch (const std::exception&) {
    return false; // opening it for real reports the fault
}

} // namespace pipewright
