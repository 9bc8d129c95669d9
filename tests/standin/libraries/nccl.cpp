// SPDX-License-Identifier: GPL-3.0-or-later
// libnccl: communicators between threads and processes. Operations are put on the stream when their group ends, those
// of one group and communicator as one kernel, which blocks its stream until its peers have done the same operations in
// the same order. Rules from nccl.h (2.28.9), with line numbers.
#include "launches.h"
#include "machine.h"
#include "ncclgroup.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <memory>
#include <nccl.h>
#include <set>
#include <vector>

using namespace standin;

struct ncclComm {
    std::shared_ptr<Group> group;
    int device = 0;
    std::atomic<int> users{0}; ///< threads that are in a call with it
    std::atomic<int> calls{0}; ///< so far
    bool leaves = false;       ///< it was given back; guarded by the library's mutex
    std::shared_ptr<const char> inGraphs = std::make_shared<const char>('g'); ///< shared by what is part of a graph
};

namespace {

enum Kind : std::uint32_t { AllReduce = 1, AllGather, ReduceScatter, Broadcast, Reduce };

struct Transfer { ///< one call
    ncclComm* communicator = nullptr;
    Stream* stream = nullptr;
    std::uint32_t kind = 0; ///< 0: between two ranks
    bool sends = false;
    int peer = 0; ///< or root
    const std::byte* from = nullptr;
    std::byte* to = nullptr;
    std::uint64_t count = 0, size = 1;
    ncclDataType_t type = ncclChar;
    bool captured = false; ///< it is part of a graph
};

/// "Whether an operation launch is graph-captured is considered a collective property of that operation and therefore
/// must be uniform over all ranks" (NCCL user guide, "Using NCCL with CUDA Graphs").
void capturedByAll(bool all)
{
    if (!all)
        broken("an operation was captured by some ranks and issued by others",
               "NCCL user guide, Using NCCL with CUDA Graphs");
}

struct Grouped {
    int depth = 0;
    std::vector<Transfer> transfers;
    std::vector<ncclComm*> leaving; ///< freed when the group ends
};
thread_local Grouped grouped;
std::mutex mutex; ///< guards what follows
std::set<ncclComm*> communicators;

/// Marks that a thread is in a call with a communicator. Only one thread at a time may use it; even an abort from
/// another thread frees what the call uses (NCCL user guide, "Thread Safety").
struct Use {
    explicit Use(ncclComm* communicator) : communicator(communicator)
    {
        int calls = 0;
        {
            const std::lock_guard lock(mutex);
            known = communicators.contains(communicator);
            if (!known)
                return;
            if (communicator->users++ > 0)
                broken("a communicator was used by two threads at a time", "NCCL user guide, Thread Safety");
            calls = ++communicator->calls;
        }
        if (failsNow("linger"))
            while (communicator->calls == calls)
                rest();
    }
    ~Use()
    {
        if (known)
            --communicator->users;
    }
    ncclComm* communicator;
    bool known = false;
};

std::uint64_t sizeOf(ncclDataType_t type)
{
    return type == ncclFloat || type == ncclInt32 ? 4 : type == ncclFloat64 || type == ncclInt64 ? 8 : 1;
}

/// Progress of one send or receive, piece by piece.
struct Moving {
    Transfer transfer;
    std::uint64_t done = 0;
    bool over = false;

    bool advance(Group& group)
    {
        if (over)
            return false;
        const std::uint64_t whole = transfer.count * transfer.size;
        Mailbox& box = transfer.sends ? group.shared().mail[group.rank][transfer.peer]
                                      : group.shared().mail[transfer.peer][group.rank];
        if (box.full.load() != (transfer.sends ? 0u : 1u)) {
            // "This operation is blocking for the GPU" (nccl.h, Send): the last piece must be received too.
            return false;
        }
        if (transfer.sends && done == whole && whole > 0) {
            over = true;
            return true;
        }
        if (transfer.sends) {
            const std::uint64_t piece = std::min<std::uint64_t>(windowBytes, whole - done);
            std::memcpy(box.window, transfer.from + done, piece);
            box.bytes = piece;
            box.whole = whole;
            box.captured = transfer.captured;
            done += piece;
            box.full = 1;
            over = whole == 0;
            return true;
        }
        if (box.whole != whole)
            broken("a receive of " + std::to_string(whole) + " bytes met a send of " + std::to_string(box.whole),
                   "nccl.h, Receive: the same count");
        capturedByAll(box.captured == transfer.captured);
        const std::uint64_t piece = std::min(box.bytes, whole - done);
        std::memcpy(transfer.to + done, box.window, piece);
        done += piece;
        box.full = 0;
        over = done == whole;
        return true;
    }
};

void collective(Group& group, const Transfer& t)
{
    Part& own = group.shared().parts[group.rank];
    own.kind = t.kind;
    own.count = t.count;
    own.type = t.type;
    own.root = static_cast<std::uint32_t>(t.peer);
    own.captured = t.captured;
    if (!group.barrier())
        return;
    for (int other = 0; other < group.ranks; ++other) {
        const Part& part = group.shared().parts[other];
        if (part.kind != own.kind || part.count != own.count || part.type != own.type || part.root != own.root)
            broken("ranks of a communicator called collectives of different kind or size",
                   "NCCL user guide, Collective Operations");
        capturedByAll(part.captured == own.captured);
    }
    const std::uint64_t bytes = t.count * t.size, all = static_cast<std::uint64_t>(group.ranks);
    const bool sums = t.kind == AllReduce || t.kind == Reduce || t.kind == ReduceScatter;
    const bool scatters = t.kind == ReduceScatter;
    // A scatter's input is as long as all its outputs; each rank's window holds one piece after another.
    for (std::uint64_t block = 0; block < (scatters ? all : 1); ++block)
        for (std::uint64_t at = 0; at < bytes || (bytes == 0 && at == 0); at += windowBytes) {
            const std::uint64_t piece = std::min<std::uint64_t>(windowBytes, bytes - at);
            if (t.from && piece > 0 && (t.kind != Broadcast || t.peer == group.rank))
                std::memcpy(own.window, t.from + block * bytes + at, piece);
            if (!group.barrier())
                return;
            const bool mine = (t.kind != Reduce || t.peer == group.rank)
                              && (!scatters || block == static_cast<std::uint64_t>(group.rank));
            if (mine && sums) {
                std::vector<float> sum(piece / sizeof(float));
                for (int other = 0; other < group.ranks; ++other) {
                    const auto* values = reinterpret_cast<const float*>(group.shared().parts[other].window);
                    for (std::size_t i = 0; i < sum.size(); ++i)
                        sum[i] = other == 0 ? values[i] : sum[i] + values[i];
                }
                std::memcpy(t.to + at, sum.data(), piece);
            } else if (mine && t.kind == AllGather) {
                for (std::uint64_t other = 0; other < all; ++other)
                    std::memcpy(t.to + other * bytes + at, group.shared().parts[other].window, piece);
            } else if (mine && t.kind == Broadcast) {
                std::memcpy(t.to + at, group.shared().parts[t.peer].window, piece);
            }
            if (!group.barrier() || bytes == 0)
                return;
        }
}

/// The kernel of all transfers of a group that share a communicator.
void perform(const std::vector<Transfer>& transfers, Group& group)
{
    std::map<std::pair<bool, int>, std::vector<Moving>> queues; ///< of each direction and peer, in order
    for (const Transfer& each : transfers)
        if (each.kind == 0)
            queues[{each.sends, each.peer}].push_back({each});
    // Sends and receives of a group progress together (nccl.h, "Group semantics").
    for (bool over = queues.empty(); !over;) {
        if (group.aborted()) // checked first, so that no later operation sees a partial move
            return;
        over = true;
        bool moved = false;
        for (auto& [key, queue] : queues) {
            const auto first = std::find_if(queue.begin(), queue.end(), [](const Moving& each) { return !each.over; });
            if (first == queue.end())
                continue;
            over = false;
            moved = first->advance(group) || moved;
        }
        if (!over && !moved)
            rest();
    }
    for (const Transfer& each : transfers)
        if (each.kind != 0 && !group.aborted())
            collective(group, each);
}

ncclResult_t launch(std::vector<Transfer> transfers)
{
    std::map<ncclComm*, std::vector<Transfer>> byCommunicator;
    for (const Transfer& each : transfers)
        byCommunicator[each.communicator].push_back(each);
    for (const auto& each : byCommunicator) {
        ncclComm* const communicator = each.first;
        const std::vector<Transfer>& own = each.second;
        const Use use(communicator);
        if (!use.known)
            return ncclInvalidArgument;
        setCurrentDevice(communicator->device);
        const bool stalls = failsFromNow("nccl");
        Stream& stream = *own.front().stream;
        count("kernels of NCCL");
        const std::shared_ptr<Group> group = communicator->group;
        const std::string name = own.front().kind == 0 ? "ncclDevKernel_SendRecv()" : "ncclDevKernel_Generic()";
        const std::shared_ptr<const char> graph = own.front().captured ? communicator->inGraphs : nullptr;
        const bool isLaunched = launchByDriver(stream, name, [group, own, stalls, graph] {
            while (stalls && !group->aborted())
                rest();
            perform(own, *group);
        });
        if (!isLaunched)
            return ncclUnhandledCudaError;
    }
    return ncclSuccess;
}

ncclResult_t add(Transfer transfer, cudaStream_t handle)
{
    const int before = currentDevice();
    {
        const Use use(transfer.communicator);
        if (!use.known) {
            broken("a communicator that is gone was used", "nccl.h, ncclCommDestroy and ncclCommAbort");
            return ncclInvalidArgument;
        }
        transfer.stream = streamOf(handle, transfer.communicator->device);
        if (!transfer.stream || transfer.stream->device != transfer.communicator->device)
            return ncclInvalidUsage;
        if (transfer.peer < 0 || transfer.peer >= transfer.communicator->group->ranks)
            return ncclInvalidArgument;
        transfer.captured = transfer.stream->capture != nullptr;
    }
    constexpr const char* kinds[] = {"sends and receives", "all-reduces", "all-gathers",
                                     "reduce-scatters",    "broadcasts",  "reduces"};
    count(std::string(kinds[transfer.kind]) + " of NCCL");
    transfer.size = sizeOf(transfer.type);
    if (grouped.depth > 0) { // "Nothing will be started on the CUDA stream until ncclGroupEnd" (nccl.h, Group Start)
        grouped.transfers.push_back(transfer);
        return ncclSuccess;
    }
    const ncclResult_t result = launch({transfer});
    setCurrentDevice(before);
    return result;
}

const std::byte* bytes(const void* data)
{
    return static_cast<const std::byte*>(data);
}
std::byte* bytes(void* data)
{
    return static_cast<std::byte*>(data);
}

} // namespace

extern "C" {

ncclResult_t ncclGetVersion(int* version)
{
    *version = NCCL_VERSION_CODE;
    return ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t result)
{
    switch (result) {
    case ncclSuccess: return "no error";
    case ncclUnhandledCudaError: return "unhandled cuda error (run with NCCL_DEBUG=INFO for details)";
    case ncclInvalidArgument: return "invalid argument (run with NCCL_DEBUG=WARN for details)";
    case ncclInvalidUsage: return "invalid usage (run with NCCL_DEBUG=WARN for details)";
    default: return "unknown result code";
    }
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id)
{
    *id = {};
    Group::newName().copy(id->internal, sizeof id->internal - 1);
    return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* result, int ranks, ncclUniqueId id, int rank, ncclConfig_t* config)
{
    if (!config || config->magic != 0xcafebeef) // nccl.h, NCCL_CONFIG_INITIALIZER: "Not initialized … error"
        return ncclInvalidArgument;
    if (rank < 0 || rank >= ranks || ranks > mostRanks)
        return ncclInvalidArgument;
    if (grouped.depth > 0)
        broken("a communicator was made in a group, which this stand-in does not play", "stand-in");
    auto made = std::make_unique<ncclComm>();
    made->device = currentDevice(); // "which has to be set before" (nccl.h, ncclCommInitRank)
    made->group = std::make_shared<Group>(id.internal, rank, ranks);
    made->group->join(); // "implicitly syncronizes with other ranks" (nccl.h, ncclCommInitRank)
    {
        const std::lock_guard lock(mutex);
        communicators.insert(made.get());
    }
    hold("communicators", 1);
    *result = made.release();
    return ncclSuccess;
}

/// NCCL frees a communicator when no graph holds calls of it any more: until then it waits (2.18 to 2.30,
/// commDestroySync). So does this, as long as a test may take to notice.
static void reclaim(ncclComm_t communicator)
{
    constexpr auto patience = std::chrono::seconds(10);
    {
        const std::lock_guard lock(mutex);
        communicators.erase(communicator);
        if (communicator->users > 0)
            broken("a communicator was given back amid a call with it", "NCCL user guide, Thread Safety");
    }
    const auto start = std::chrono::steady_clock::now();
    while (communicator->inGraphs.use_count() > 1 && std::chrono::steady_clock::now() - start < patience)
        rest();
    if (communicator->inGraphs.use_count() > 1)
        broken("a communicator was given back while graphs hold calls of it, and waited for them for ever",
               "NCCL user guide, Using NCCL with CUDA Graphs");
    hold("communicators", -1);
    // The object is kept, as another thread may be in a call with it; the group is freed with the last kernel that uses
    // it.
    ++communicator->calls;
    if (communicator->users == 0)
        communicator->group.reset();
}

/// An abort ends what is in flight at once; in a group the communicator is freed when the group ends.
static ncclResult_t leave(ncclComm_t communicator, bool aborts)
{
    {
        const std::lock_guard lock(mutex);
        if (!communicators.contains(communicator) || std::exchange(communicator->leaves, true)) {
            broken("a communicator was given back twice", "nccl.h, ncclCommDestroy and ncclCommAbort");
            return ncclInvalidArgument;
        }
    }
    if (aborts) {
        communicator->group->abort();
        if (grouped.depth > 0)
            ++communicator->calls; // a call that lingers comes back
    }
    if (grouped.depth > 0)
        grouped.leaving.push_back(communicator);
    else
        reclaim(communicator);
    return ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t communicator)
{
    return leave(communicator, false);
}

ncclResult_t ncclCommAbort(ncclComm_t communicator)
{
    return leave(communicator, true);
}

ncclResult_t ncclGroupStart()
{
    ++grouped.depth;
    return ncclSuccess;
}

ncclResult_t ncclGroupEnd()
{
    if (grouped.depth == 0) {
        broken("a group ended that had not begun", "nccl.h, Group End");
        return ncclInvalidUsage;
    }
    if (--grouped.depth > 0)
        return ncclSuccess;
    const int before = currentDevice();
    const ncclResult_t result = launch(std::exchange(grouped.transfers, {}));
    for (ncclComm* communicator : std::exchange(grouped.leaving, {}))
        reclaim(communicator);
    setCurrentDevice(before);
    return result;
}

ncclResult_t ncclSend(const void* data, size_t count, ncclDataType_t type, int peer, ncclComm_t communicator,
                      cudaStream_t stream)
{
    return add(
        {.communicator = communicator, .sends = true, .peer = peer, .from = bytes(data), .count = count, .type = type},
        stream);
}

ncclResult_t ncclRecv(void* data, size_t count, ncclDataType_t type, int peer, ncclComm_t communicator,
                      cudaStream_t stream)
{
    return add({.communicator = communicator, .peer = peer, .to = bytes(data), .count = count, .type = type}, stream);
}

ncclResult_t ncclAllReduce(const void* from, void* to, size_t count, ncclDataType_t type, ncclRedOp_t operation,
                           ncclComm_t communicator, cudaStream_t stream)
{
    if (type != ncclFloat || operation != ncclSum)
        return ncclInvalidArgument;
    return add({.communicator = communicator,
                .kind = AllReduce,
                .from = bytes(from),
                .to = bytes(to),
                .count = count,
                .type = type},
               stream);
}

ncclResult_t ncclAllGather(const void* from, void* to, size_t count, ncclDataType_t type, ncclComm_t communicator,
                           cudaStream_t stream)
{
    return add({.communicator = communicator,
                .kind = AllGather,
                .from = bytes(from),
                .to = bytes(to),
                .count = count,
                .type = type},
               stream);
}

ncclResult_t ncclReduceScatter(const void* from, void* to, size_t count, ncclDataType_t type, ncclRedOp_t operation,
                               ncclComm_t communicator, cudaStream_t stream)
{
    if (type != ncclFloat || operation != ncclSum)
        return ncclInvalidArgument;
    return add({.communicator = communicator,
                .kind = ReduceScatter,
                .from = bytes(from),
                .to = bytes(to),
                .count = count,
                .type = type},
               stream);
}

ncclResult_t ncclBroadcast(const void* from, void* to, size_t count, ncclDataType_t type, int root,
                           ncclComm_t communicator, cudaStream_t stream)
{
    return add({.communicator = communicator,
                .kind = Broadcast,
                .peer = root,
                .from = bytes(from),
                .to = bytes(to),
                .count = count,
                .type = type},
               stream);
}

ncclResult_t ncclReduce(const void* from, void* to, size_t count, ncclDataType_t type, ncclRedOp_t operation, int root,
                        ncclComm_t communicator, cudaStream_t stream)
{
    if (type != ncclFloat || operation != ncclSum)
        return ncclInvalidArgument;
    return add({.communicator = communicator,
                .kind = Reduce,
                .peer = root,
                .from = bytes(from),
                .to = bytes(to),
                .count = count,
                .type = type},
               stream);
}

} // extern "C"
