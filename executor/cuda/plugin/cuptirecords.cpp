// SPDX-License-Identifier: GPL-3.0-or-later
// Two passes over the buffers: the first maps correlations to blocks and launch calls, the second writes activities.
// O(records), with one hash look-up each.
#include "executor/cuda/plugin/cuptirecords.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace pipewright::plugin {

namespace {

/// Record types that every libcupti.so.12 fills as far as they are read here: each library fills its newest versions,
/// which begin with the same members.
using Kernel = CUpti_ActivityKernel9;
using Copy = CUpti_ActivityMemcpy5;
using PeerCopy = CUpti_ActivityMemcpyPtoP4;
using Set = CUpti_ActivityMemset4;
using Overhead = CUpti_ActivityOverhead2;
using Memory = CUpti_ActivityMemory3;
using Call = CUpti_ActivityAPI;
using Label = CUpti_ActivityExternalCorrelation;
#if CUPTI_API_VERSION >= 130000
using NewestKernel = CUpti_ActivityKernel10;
static_assert(offsetof(Kernel, graphNodeId) == offsetof(NewestKernel, graphNodeId)
              && offsetof(Kernel, name) == offsetof(NewestKernel, name)
              && offsetof(Kernel, correlationId) == offsetof(NewestKernel, correlationId));
#endif

template<typename Record>
const Record& as(const CUpti_Activity& record)
{
    return reinterpret_cast<const Record&>(record);
}

const char* nameOf(CUpti_ActivityOverheadKind kind)
{
    switch (kind) {
    case CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH: return "flush of a buffer";
    case CUPTI_ACTIVITY_OVERHEAD_CUPTI_INSTRUMENTATION: return "instrumentation";
    case CUPTI_ACTIVITY_OVERHEAD_CUPTI_RESOURCE: return "resources of CUPTI";
    case CUPTI_ACTIVITY_OVERHEAD_COMMAND_BUFFER_FULL: return "command buffer full";
    default: return "overhead";
    }
}

PipewrightGpuActivity emptyActivity(int32_t kind)
{
    PipewrightGpuActivity activity{};
    activity.block = activity.bytes = -1;
    activity.device = activity.stream = activity.toDevice = -1;
    activity.thread = -1;
    activity.kind = kind;
    activity.name = "";
    return activity;
}

} // namespace

template<typename Each>
void CuptiRecords::forEach(const std::vector<Buffer>& buffers, Each each)
{
    for (const Buffer& buffer : buffers)
        for (CUpti_Activity* record = nullptr;
             buffer.bytes > 0 && m_next(buffer.data, buffer.bytes, &record) == CUPTI_SUCCESS;)
            each(*record);
}

void CuptiRecords::read(const std::vector<Buffer>& buffers, std::vector<PipewrightGpuActivity>& activities)
{
    m_olderBlocks = std::exchange(m_blocks, {});
    m_launched.clear();
    forEach(buffers, [this](const CUpti_Activity& record) { relate(record); });
    const std::size_t first = activities.size();
    forEach(buffers, [&](const CUpti_Activity& record) { add(record, activities); });
    std::stable_sort(activities.begin() + static_cast<std::ptrdiff_t>(first), activities.end(),
                     [](const PipewrightGpuActivity& a, const PipewrightGpuActivity& b) { return a.start < b.start; });
}

void CuptiRecords::relate(const CUpti_Activity& record)
{
    if (record.kind == CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION) {
        const Label& label = as<Label>(record);
        if (label.externalKind == CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0)
            m_blocks[label.correlationId] = static_cast<int64_t>(label.externalId);
    } else if (record.kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
        m_launched.insert(as<Kernel>(record).correlationId);
    } else if (record.kind == CUPTI_ACTIVITY_KIND_MEMCPY) {
        m_launched.insert(as<Copy>(record).correlationId);
    } else if (record.kind == CUPTI_ACTIVITY_KIND_MEMCPY2) {
        m_launched.insert(as<PeerCopy>(record).correlationId);
    } else if (record.kind == CUPTI_ACTIVITY_KIND_MEMSET) {
        m_launched.insert(as<Set>(record).correlationId);
    }
}

template<typename Record>
PipewrightGpuActivity CuptiRecords::onStream(const Record& record, int32_t kind, const char* name)
{
    PipewrightGpuActivity activity = emptyActivity(kind);
    activity.start = static_cast<int64_t>(record.start);
    activity.end = static_cast<int64_t>(record.end);
    activity.device = static_cast<int32_t>(record.deviceId);
    activity.stream = streamOf(activity.device, record.contextId, record.streamId);
    activity.correlation = record.correlationId;
    activity.graphNode = record.graphNodeId;
    activity.name = name ? name : "";
    return activity;
}

/// CUPTI numbers streams per context, so green contexts of one GPU use the same numbers: the first context with a
/// number keeps it, the others get the next free one.
int32_t CuptiRecords::streamOf(int32_t gpu, uint32_t context, uint32_t stream)
{
    const auto [found, isNew] = m_streams.try_emplace({context, stream}, static_cast<int32_t>(stream));
    while (isNew && !m_taken.emplace(gpu, found->second).second)
        ++found->second;
    return found->second;
}

void CuptiRecords::add(const CUpti_Activity& record, std::vector<PipewrightGpuActivity>& activities)
{
    PipewrightGpuActivity activity{};
    switch (record.kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
        activity = onStream(as<Kernel>(record), PIPEWRIGHT_GPU_KERNEL, as<Kernel>(record).name);
        break;
    case CUPTI_ACTIVITY_KIND_MEMCPY:
        activity = onStream(as<Copy>(record), PIPEWRIGHT_GPU_COPY, "copy");
        activity.bytes = static_cast<int64_t>(as<Copy>(record).bytes);
        activity.copyKind = as<Copy>(record).copyKind;
        break;
    case CUPTI_ACTIVITY_KIND_MEMCPY2:
        activity = onStream(as<PeerCopy>(record), PIPEWRIGHT_GPU_COPY, "copy to another GPU");
        activity.bytes = static_cast<int64_t>(as<PeerCopy>(record).bytes);
        activity.copyKind = as<PeerCopy>(record).copyKind;
        activity.device = static_cast<int32_t>(as<PeerCopy>(record).srcDeviceId);
        activity.toDevice = static_cast<int32_t>(as<PeerCopy>(record).dstDeviceId);
        break;
    case CUPTI_ACTIVITY_KIND_MEMSET:
        activity = onStream(as<Set>(record), PIPEWRIGHT_GPU_SET, "set");
        activity.bytes = static_cast<int64_t>(as<Set>(record).bytes);
        break;
    case CUPTI_ACTIVITY_KIND_OVERHEAD: {
        const Overhead& overhead = as<Overhead>(record);
        activity = emptyActivity(PIPEWRIGHT_GPU_OVERHEAD);
        activity.start = static_cast<int64_t>(overhead.start);
        activity.end = static_cast<int64_t>(overhead.end);
        activity.correlation = overhead.correlationId;
        activity.name = nameOf(overhead.overheadKind);
#if CUPTI_API_VERSION >= 130000
        // "Client is responsible for freeing this memory" (cupti_activity.h). Records of a libcupti.so.12 may end
        // before this member, so a plugin for CUDA 12 does not read it, and data that a newer libcupti.so.12 attaches
        // is not freed.
        if (void* data = as<CUpti_ActivityOverhead3>(record).overheadData)
            m_release(data);
#endif
        break;
    }
    case CUPTI_ACTIVITY_KIND_MEMORY2: {
        const Memory& memory = as<Memory>(record);
        const bool released = memory.memoryOperationType == CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE;
        activity = emptyActivity(PIPEWRIGHT_GPU_MEMORY);
        activity.start = activity.end = static_cast<int64_t>(memory.timestamp);
        activity.correlation = memory.correlationId;
        activity.device = static_cast<int32_t>(memory.deviceId);
        activity.bytes = released ? -static_cast<int64_t>(memory.bytes) : static_cast<int64_t>(memory.bytes);
        activity.name = released ? "release" : "allocate";
        break;
    }
    case CUPTI_ACTIVITY_KIND_RUNTIME:
    case CUPTI_ACTIVITY_KIND_DRIVER: {
        const Call& call = as<Call>(record);
        if (!m_launched.contains(call.correlationId)) // launched nothing, such as the thousands of queries in a step
            return;
        activity = emptyActivity(PIPEWRIGHT_GPU_CALL);
        activity.start = static_cast<int64_t>(call.start);
        activity.end = static_cast<int64_t>(call.end);
        activity.correlation = call.correlationId;
        activity.thread = call.threadId;
        const bool runtime = record.kind == CUPTI_ACTIVITY_KIND_RUNTIME;
        activity.name = runtime ? "call of the runtime" : "call of the driver";
        if (const char* name = nullptr;
            m_nameOfCall
            && m_nameOfCall(runtime ? CUPTI_CB_DOMAIN_RUNTIME_API : CUPTI_CB_DOMAIN_DRIVER_API, call.cbid, &name)
                   == CUPTI_SUCCESS
            && name)
            activity.name = name;
        break;
    }
    default: return;
    }
    if (activity.start == CUPTI_TIMESTAMP_UNKNOWN && activity.end == CUPTI_TIMESTAMP_UNKNOWN) {
        ++m_untimed;
        return;
    }
    if (activity.start <= 0 || activity.end < activity.start) {
        ++m_malformed;
        return;
    }
    for (const auto* blocks : {&m_blocks, &m_olderBlocks})
        if (const auto block = blocks->find(activity.correlation); activity.block < 0 && block != blocks->end())
            activity.block = block->second;
    activities.push_back(activity);
}

} // namespace pipewright::plugin
