// SPDX-License-Identifier: GPL-3.0-or-later
// A double of the CUDA plugin's table, for the tests of CudaBackend: two GPUs made of threads with host maths behind
// them. Every stream is a thread with a queue, so work happens when its stream comes to it and not when it is issued,
// copies overtake maths, and a wait that the backend forgot gives wrong numbers (or a data race that the thread
// sanitizer sees). Events, captures, NCCL's rendezvous and its rule of one thread per GPU behave as on a GPU; speed
// does not.
#pragma once

#include "executor/cuda/pretendedmaths.h"
#include "executor/cuda/pretendedmemory.h"
#include "executor/cuda/pretendedstreams.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

namespace pretended {

/// The two ends of a directed pair: a send holds its stream until the receive has taken it.
struct Channel {
    std::mutex mutex;
    std::condition_variable changed;
    const void* data = nullptr;
    std::int64_t bytes = -1; ///< waiting to be taken; -1: none
    bool aborted = false;
};
struct Group;
struct End {
    std::shared_ptr<Channel> channel; ///< of a pair; else of a group
    std::int32_t device = 0;
    std::shared_ptr<Group> group{};
    int rank = 0;
};

/// A communicator of many. Collectives are barriers: the last to come does the work, and every stream goes on when it
/// is done.
struct Group {
    struct Part {
        int operation = -1; ///< which call, and its root: all members must agree
        const float* from = nullptr;
        float* to = nullptr;
        std::int64_t count = 0;
    };
    explicit Group(int ranks) : parts(n(ranks)), letters(n(ranks) * n(ranks)) {}
    std::mutex mutex;
    std::condition_variable changed;
    std::vector<Part> parts;
    std::vector<std::deque<std::vector<std::byte>>> letters; ///< from, to
    int joined = 0;
    int come = 0;
    std::uint64_t round = 0;
    bool aborted = false;
};
inline std::map<std::string, std::shared_ptr<Group>>& groups()
{
    static std::map<std::string, std::shared_ptr<Group>> all;
    return all;
}
inline std::mutex& groupsMutex()
{
    static std::mutex mutex;
    return mutex;
}
inline std::atomic<int> collectives{0};
/// The GPU whose ranks never come to be connected; -1: all do.
inline std::atomic<int> absentGpu{-1};
/// Calls of members of a group that were not of the same kind and size.
inline std::atomic<int> disagreements{0};

template<typename Work>
void barrier(Group& group, int rank, Group::Part part, Work work)
{
    ++collectives;
    std::unique_lock lock(group.mutex);
    group.parts[n(rank)] = part;
    if (++group.come == static_cast<int>(group.parts.size())) {
        for (const Group::Part& other : group.parts)
            if (other.operation != part.operation || other.count != part.count)
                ++disagreements;
        work();
        group.come = 0;
        ++group.round;
        group.changed.notify_all();
        return;
    }
    group.changed.wait(lock, [&group, round = group.round] { return group.aborted || group.round != round; });
}

/// What each GPU's rank of a group was given, in its order.
struct Given {
    std::int32_t device = 0;
    const Group* group = nullptr;
};
inline std::mutex& givenMutex()
{
    static std::mutex mutex;
    return mutex;
}
inline std::vector<Given>& given()
{
    static std::vector<Given> all;
    return all;
}
inline void note(std::int32_t device, const Group& group)
{
    const std::lock_guard lock(givenMutex());
    given().push_back({device, &group});
}

/// Of each GPU, as it says: what is asked for is the host's.
inline std::atomic<std::int64_t> memory{std::int64_t{1} << 34};

/// NCCL wants one thread per GPU.
inline int callsNccl(std::int32_t device)
{
    static std::mutex mutex;
    static std::map<std::int32_t, std::thread::id> owners;
    static thread_local std::map<std::int32_t, bool> known; // threads come and go with backends
    const std::lock_guard lock(mutex);
    if (known[device])
        return owners[device] == std::this_thread::get_id() ? 0 : fault("NCCL was called from two threads of a GPU");
    known[device] = true;
    owners[device] = std::this_thread::get_id();
    return 0;
}

inline void addHardware(PipewrightCudaTable& t)
{
    t.abi = PIPEWRIGHT_CUDA_ABI;
    t.size = sizeof(PipewrightCudaTable);
    t.toolkit = 13000;
    t.buildInfo = [] { return "pretended"; };
    t.lastError = [] { return lastError.c_str(); };
    t.deviceCount = [](std::int32_t* count) { return *count = visibleGpus, 0; };
    t.deviceInfo = [](std::int32_t device, PipewrightCudaDevice* info) {
        *info = {};
        std::strcpy(info->name, "pretended");
        info->memory = memory;
        info->multiprocessors = multiprocessors;
        std::snprintf(info->busId, sizeof info->busId, "0000:%02x:00.0", firstVisible + device);
        return 0;
    };
    addMemory(t);
    t.createSlices = [](std::int32_t, const std::int32_t* wanted, std::int32_t count, std::int32_t* granted,
                        void** slices) {
        int left = multiprocessors;
        for (int i = 0; i < count; ++i) {
            granted[i] = (wanted[i] + 1) / 2 * 2;
            left -= granted[i];
            slices[i] = new std::int32_t(granted[i]);
        }
        return left < 0 ? fault("not that many multiprocessors") : 0;
    };
    t.destroySlice = [](void* slice) { return delete static_cast<std::int32_t*>(slice), 0; };
    t.createStream = [](std::int32_t device, void*, void** made) { return *made = new Stream(device), 0; };
    t.destroyStream = [](void* handle) { return delete &stream(handle), 0; };
    t.streamDone = [](void* handle, std::int32_t* done) { return *done = stream(handle).done(), 0; };
    t.createEvent = [](std::int32_t device, void** made) {
        auto* shared = new SharedEvent(std::make_shared<Event>());
        (*shared)->device = device;
        return *made = shared, 0;
    };
    t.destroyEvent = [](void* handle) { return delete &event(handle), 0; };
    t.recordEvent = [](void* handle, void* on) {
        const SharedEvent what = event(handle);
        if (what->device != stream(on).device)
            return fault("an event was recorded on another GPU than its own");
        std::uint64_t number = 0;
        {
            const std::lock_guard lock(what->mutex);
            number = ++what->recorded;
        }
        stream(on).push([what, number] {
            {
                const std::lock_guard lock(what->mutex);
                what->done = std::max(what->done, number);
                what->time = pipewright::steadyNow();
            }
            what->happened.notify_all();
        });
        return 0;
    };
    t.eventDone = [](void* handle, std::int32_t* done) {
        const std::lock_guard lock(event(handle)->mutex);
        *done = event(handle)->done == event(handle)->recorded;
        return 0;
    };
    t.streamWaits = [](void* on, void* handle) {
        const SharedEvent what = event(handle);
        std::uint64_t number = 0;
        {
            const std::lock_guard lock(what->mutex);
            number = what->recorded;
        }
        if (number == 0) // it would pass at once on a GPU: a mistake of the backend
            return fault("a wait for an event that was never recorded");
        stream(on).push([what, number] {
            std::unique_lock lock(what->mutex);
            what->happened.wait(lock, [&] { return what->done >= number; });
        });
        return 0;
    };
    t.elapsed = [](void* from, void* to, float* milliseconds) {
        if (event(from)->device != event(to)->device)
            return fault("events of two GPUs were compared");
        std::int64_t times[2];
        for (int i = 0; i < 2; ++i) {
            const SharedEvent& each = event(i == 0 ? from : to);
            const std::lock_guard lock(each->mutex);
            if (each->done != each->recorded || each->done == 0)
                return fault("the time of an event that has not happened");
            times[i] = each->time;
        }
        *milliseconds = static_cast<float>(double(times[1] - times[0]) / 1e6);
        return 0;
    };
    t.copy = [](void* to, std::int32_t, const void* from, std::int32_t, std::int64_t bytes, void* on) {
        ++copies;
        stream(on).push([=] { std::memcpy(to, from, n(bytes)); });
        return 0;
    };
    t.enablePeer = [](std::int32_t, std::int32_t, std::int32_t* direct) { return *direct = 1, 0; };
    t.spin = [](std::int32_t, void* on, std::int64_t time) {
        pushKernel(stream(on), "spin", [=] { std::this_thread::sleep_for(std::chrono::nanoseconds(time)); });
        return 0;
    };
    t.stamp = [](std::int32_t, void* on, void* place) {
        stream(on).push([=] { *static_cast<std::int64_t*>(place) = pipewright::steadyNow(); });
        return 0;
    };
    t.spinFrom = [](std::int32_t, void* on, const void* place, std::int64_t time) {
        stream(on).push([=] {
            const std::int64_t left = *static_cast<const std::int64_t*>(place) + time - pipewright::steadyNow();
            std::this_thread::sleep_for(std::chrono::nanoseconds(left));
        });
        return 0;
    };
    t.beginCapture = [](void* on) { return stream(on).capturing = true, 0; };
    t.endCapture = [](void* on, void** graph) {
        stream(on).capturing = false;
        *graph = new std::vector<Work>(std::exchange(stream(on).captured, {}));
        return 0;
    };
    t.launchGraph = [](void* graph, void* on) {
        ++graphLaunches;
        for (const Work& work : *static_cast<std::vector<Work>*>(graph))
            stream(on).push(work);
        return 0;
    };
    t.destroyGraph = [](void* graph) { return delete static_cast<std::vector<Work>*>(graph), 0; };
}

/// Every member's part is there; `kind` tells the calls apart.
template<typename Work>
int collective(void* member, int kind, const float* from, float* to, std::int64_t count, void* on, Work work)
{
    const End end = *static_cast<End*>(member);
    if (const int code = callsNccl(end.device); code != 0)
        return code;
    if (stream(on).device != end.device)
        return fault("a collective on the stream of another GPU");
    note(end.device, *end.group);
    stream(on).push([end, kind, from, to, count, work] {
        barrier(*end.group, end.rank, {kind, from, to, count}, [&] { work(end.group->parts); });
    });
    return 0;
}

/// In the order of the members, whoever asks.
inline std::vector<float> sumOf(const std::vector<Group::Part>& parts, std::int64_t first, std::int64_t count)
{
    std::vector<float> sum(parts.front().from + first, parts.front().from + first + count);
    for (std::size_t m = 1; m < parts.size(); ++m)
        for (std::size_t i = 0; i < sum.size(); ++i)
            sum[i] += parts[m].from[n(first) + i];
    return sum;
}

inline void addCollectives(PipewrightCudaTable& t)
{
    using Parts = std::vector<Group::Part>;
    t.ncclName = [](std::uint8_t* name) {
        static std::atomic<int> made{0};
        std::memset(name, 0, PIPEWRIGHT_NCCL_NAME);
        std::snprintf(reinterpret_cast<char*>(name), PIPEWRIGHT_NCCL_NAME, "group %d", ++made);
        return 0;
    };
    t.ncclJoin = [](std::int32_t device, const std::uint8_t* name, std::int32_t rank, std::int32_t ranks, std::int32_t,
                    void** member) {
        const std::lock_guard lock(groupsMutex());
        auto& group = groups()[reinterpret_cast<const char*>(name)];
        if (!group)
            group = std::make_shared<Group>(ranks);
        group->joined += device != absentGpu;
        *member = new End{nullptr, device, group, rank};
        return n(rank) < group->parts.size() ? 0 : fault("a rank that the group does not have");
    };
    t.ncclJoined = [](void* member, std::int32_t* joined) {
        const std::lock_guard lock(groupsMutex());
        const Group& group = *static_cast<End*>(member)->group;
        return *joined = n(group.joined) == group.parts.size(), 0;
    };
    t.ncclWarmUp = [](void* const*, std::int32_t, std::int64_t) { return 0; };
    t.ncclAllReduce = [](void* member, const float* from, float* to, std::int64_t count, void* on) {
        return collective(member, 0, from, to, count, on, [count](const Parts& parts) {
            const std::vector<float> sum = sumOf(parts, 0, count);
            for (const auto& part : parts)
                std::copy(sum.begin(), sum.end(), part.to);
        });
    };
    t.ncclAllGather = [](void* member, const float* from, float* to, std::int64_t count, void* on) {
        return collective(member, 1, from, to, count, on, [count](const Parts& parts) {
            for (const auto& part : parts)
                for (std::size_t m = 0; m < parts.size(); ++m)
                    std::copy_n(parts[m].from, count, part.to + m * n(count));
        });
    };
    t.ncclReduceScatter = [](void* member, const float* from, float* to, std::int64_t count, void* on) {
        return collective(member, 2, from, to, count, on, [count](const Parts& parts) {
            for (std::size_t m = 0; m < parts.size(); ++m) {
                const std::vector<float> sum = sumOf(parts, static_cast<std::int64_t>(m) * count, count);
                std::copy(sum.begin(), sum.end(), parts[m].to);
            }
        });
    };
    t.ncclBroadcast = [](void* member, float* data, std::int64_t count, std::int32_t root, void* on) {
        return collective(member, 100 + root, data, data, count, on, [count, root](const Parts& parts) {
            for (const auto& part : parts)
                if (part.to != parts[n(root)].to)
                    std::copy_n(parts[n(root)].from, count, part.to);
        });
    };
    t.ncclReduce = [](void* member, const float* from, float* to, std::int64_t count, std::int32_t root, void* on) {
        return collective(member, 200 + root, from, to, count, on, [count, root](const Parts& parts) {
            const std::vector<float> sum = sumOf(parts, 0, count);
            std::copy(sum.begin(), sum.end(), parts[n(root)].to);
        });
    };
    // Unlike NCCL's own a send does not hold its stream: a group issues its sends and receives as one.
    t.ncclSendTo = [](void* member, std::int32_t rank, const void* data, std::int64_t bytes, void* on) {
        const End end = *static_cast<End*>(member);
        if (const int code = callsNccl(end.device); code != 0)
            return code;
        note(end.device, *end.group);
        stream(on).push([end, rank, data, bytes] {
            Group& group = *end.group;
            std::vector<std::byte> kept(static_cast<const std::byte*>(data),
                                        static_cast<const std::byte*>(data) + bytes);
            const std::lock_guard lock(group.mutex);
            group.letters[n(end.rank) * group.parts.size() + n(rank)].push_back(std::move(kept));
            group.changed.notify_all();
        });
        return 0;
    };
    t.ncclReceiveFrom = [](void* member, std::int32_t rank, void* data, std::int64_t bytes, void* on) {
        const End end = *static_cast<End*>(member);
        if (const int code = callsNccl(end.device); code != 0)
            return code;
        note(end.device, *end.group);
        stream(on).push([end, rank, data, bytes] {
            Group& group = *end.group;
            std::unique_lock lock(group.mutex);
            auto& box = group.letters[n(rank) * group.parts.size() + n(end.rank)];
            group.changed.wait(lock, [&] { return group.aborted || !box.empty(); });
            if (group.aborted)
                return;
            if (box.front().size() != n(bytes))
                ++disagreements;
            std::memcpy(data, box.front().data(), std::min(n(bytes), box.front().size()));
            box.pop_front();
        });
        return 0;
    };
}

inline void addTools(PipewrightCudaTable& t)
{
    t.beginBlock = [](const char* label, std::int64_t block) {
        currentBlock = block;
        return std::strncmp(label, "PP:", 3) == 0 ? 0 : fault("a block without a name");
    };
    t.endBlock = [] { return currentBlock = -1, 0; };
    t.startActivities = [](const char* library) {
        if (std::strcmp(library, "taken") == 0)
            return fault("another profiler is attached");
        const std::lock_guard lock(recording().mutex);
        recording().running = true;
        return 0;
    };
    t.flushActivities = [](PipewrightGpuActivities take, void* context, std::int64_t* dropped, std::int64_t* untimed) {
        *untimed = 0;
        *dropped = 0;
        std::vector<PipewrightGpuActivity> activities;
        {
            const std::lock_guard lock(recording().mutex);
            activities.swap(recording().activities);
        }
        take(context, activities.data(), static_cast<std::int32_t>(activities.size()));
        return 0;
    };
    t.stopActivities = [] {
        const std::lock_guard lock(recording().mutex);
        recording().running = false;
        return 0;
    };
    t.ncclOpen = [](const char*) { return 0; };
    t.ncclConnect = [](std::int32_t from, std::int32_t to, std::int64_t, void** sender, void** receiver) {
        const auto channel = std::make_shared<Channel>();
        *sender = new End{channel, from};
        *receiver = new End{channel, to};
        return from == to ? fault("NCCL does not connect a GPU with itself") : 0;
    };
    t.ncclSend = [](void* end, const void* data, std::int64_t bytes, void* on) {
        const End& sender = *static_cast<End*>(end);
        if (const int code = callsNccl(sender.device); code != 0)
            return code;
        stream(on).push([channel = sender.channel, data, bytes] {
            std::unique_lock lock(channel->mutex);
            channel->data = data;
            channel->bytes = bytes;
            channel->changed.notify_all();
            channel->changed.wait(lock, [&] { return channel->bytes < 0 || channel->aborted; });
        });
        return 0;
    };
    t.ncclReceive = [](void* end, void* data, std::int64_t bytes, void* on) {
        const End& receiver = *static_cast<End*>(end);
        if (const int code = callsNccl(receiver.device); code != 0)
            return code;
        stream(on).push([channel = receiver.channel, data, bytes] {
            std::unique_lock lock(channel->mutex);
            channel->changed.wait(lock, [&] { return channel->bytes >= 0 || channel->aborted; });
            if (channel->aborted)
                return;
            std::memcpy(data, channel->data, n(std::min(bytes, channel->bytes)));
            channel->bytes = -1;
            channel->changed.notify_all();
        });
        return 0;
    };
    t.ncclGroup = [](std::int32_t) { return 0; };
    addCollectives(t);
    t.ncclAbort = [](void* end) {
        const End* owned = static_cast<End*>(end);
        if (owned->group) {
            const std::lock_guard lock(owned->group->mutex);
            owned->group->aborted = true;
            owned->group->changed.notify_all();
            return 0;
        }
        const std::lock_guard lock(owned->channel->mutex);
        owned->channel->aborted = true;
        owned->channel->changed.notify_all();
        return 0;
    };
    t.ncclClose = [](void* end) { return delete static_cast<End*>(end), 0; };
}

inline const PipewrightCudaTable& table()
{
    static const PipewrightCudaTable made = [] {
        PipewrightCudaTable t{};
        addHardware(t);
        addTools(t);
        addMaths(t);
        return t;
    }();
    return made;
}

} // namespace pretended
