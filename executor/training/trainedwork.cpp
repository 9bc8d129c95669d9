// SPDX-License-Identifier: GPL-3.0-or-later
// O(parameters of the stage) for each update; O(buffers) to bind and to fetch.
#include "executor/training/trainedwork.h"

#include "core/base/diagnostic.h"
#include "executor/training/blockmemory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace pipewright {

Bytes TrainedWork::bytesBeside(const Program& program, int device, const Capabilities& capabilities) const
{
    return m_choices ? m_choices->bytesOn(program, device, capabilities) : 0;
}

std::vector<BufferKind> TrainedWork::kindsOfStart() const
{
    std::vector<BufferKind> kinds{kindOfParameters()};
    if (m_program->versioned() && kinds.front() != BufferKind::OptimizerState)
        kinds.push_back(BufferKind::OptimizerState);
    return kinds;
}

BufferKind TrainedWork::kindOfResult() const
{
    return m_program->versioned() ? kindOfParameters() : kindOfGradients();
}

bool TrainedWork::isOnHost(int device) const
{
    return !m_backend || (isLocal(device) && m_backend->device(device).capabilities().hostAddressable);
}

void TrainedWork::fetch(BufferKind kind)
{
    for (BufferId b = 0; b < m_program->buffers.size(); ++b) {
        const Buffer& buffer = m_program->buffers[b];
        if (buffer.kind != kind || !isLocal(buffer.device) || isOnHost(buffer.device) || m_regions[b].bytes == 0)
            continue;
        const Access from = access(buffer.device);
        from.device->read(*from.stream, m_regions[b], mirrorOf(b).data);
    }
}

Region TrainedWork::mirrorOf(BufferId buffer)
{
    const Region region = m_regions[buffer];
    if (isOnHost(m_program->buffers[buffer].device))
        return region;
    std::vector<std::byte>& mirror = m_mirrors[buffer];
    mirror.resize(static_cast<std::size_t>(region.bytes));
    return {mirror.data(), region.bytes};
}

void TrainedWork::useProgram(const Program& program, std::span<const Region> regions)
{
    m_program = &program;
    m_regions = regions;
    m_mirrors.clear();
    m_buffers.clear();
    if (m_choices && m_backend)
        m_choices->prepare(program, *m_backend);
}

void TrainedWork::bindCopy(BufferId number, std::size_t count, StageCopy& copy)
{
    const Buffer& buffer = m_program->buffers[number];
    const Region region = m_regions[number];
    const std::span<float> values = region.data ? floats(region) : std::span<float>(); // null: another process's
    if (buffer.kind == BufferKind::Parameters) {
        copy.stored = bytes(region);
        if (!isBf16())
            copy.parameters = values;
    } else if (buffer.kind == BufferKind::Gradients) {
        if (m_program->sharesGradientsOfReplicas())
            return;
        copy.gradients = values;
    } else if (buffer.kind == BufferKind::KeptGradients) {
        copy.keptGradients = values;
    } else if (buffer.kind == BufferKind::WholeGradients) {
        copy.gradients = values;
    } else if (buffer.kind == BufferKind::OptimizerState) { // master copies lie before the optimizer's own
        const auto share = static_cast<std::size_t>(shareOf(count, buffer.replica).count());
        const std::size_t masters = isBf16() ? std::min(share, values.size()) : 0;
        copy.state = values.subspan(masters);
        if (masters > 0)
            copy.parameters = values.first(masters);
    } else {
        return;
    }
    m_buffers[{buffer.kind, buffer.stage, buffer.replica, buffer.device}] = number;
}

void TrainedWork::initialise(const StageCopy& copy, int device, int replica, std::span<const float> parameters)
{
    const Access to = access(device);
    const auto write = [&to](std::span<std::byte> memory, const void* from) {
        if (memory.empty())
            return;
        if (to.device)
            to.device->write(*to.stream, {memory.data(), static_cast<Bytes>(memory.size())}, from);
        else
            std::memcpy(memory.data(), from, memory.size());
    };
    const bool isShare = m_program->sharesParametersOfReplicas();
    const std::int64_t first = shareOf(parameters.size(), replica).begin;
    std::vector<std::uint16_t> narrow(isBf16() ? parameters.size() : 0);
    if (isBf16()) {
        kernels::run(kernels::Narrow{parameters, narrow});
        write(copy.stored, narrow.data() + (isShare ? first : 0));
    }
    write(std::as_writable_bytes(copy.parameters), parameters.data() + (isBf16() || isShare ? first : 0));
    clearGradients(copy, device);
    if (!copy.state.empty())
        to.operations->run(kernels::Fill{copy.state, 0});
    if (to.stream)
        to.stream->synchronize(); // the written host memory is read until then
}

void TrainedWork::clearGradients(const StageCopy& copy, int device)
{
    if (!copy.gradients.empty() && !m_program->sharesGradientsOfReplicas())
        access(device).operations->run(kernels::Fill{copy.gradients, 0});
}

ReplicaShare TrainedWork::shareOf(std::size_t count, int replica) const
{
    return updatedBy(*m_program, static_cast<std::int64_t>(count), replica);
}

void TrainedWork::updateShare(const TaskContext& context, const StageCopy& copy, std::size_t count,
                              const StageOptimizer& optimizer) const
{
    const kernels::Operations& on = *context.operations;
    const auto partOf = [&](auto values, int replica, std::size_t width) {
        const ReplicaShare share = shareOf(count, replica);
        return values.subspan(static_cast<std::size_t>(share.begin) * width,
                              static_cast<std::size_t>(share.count()) * width);
    };
    const auto storedPart = [&](std::span<std::byte> stored, int replica) {
        return partOf(stored, replica, isBf16() ? sizeof(std::uint16_t) : sizeof(float));
    };
    const int replica = context.task->replica;
    if (context.task->kind == TaskKind::CopyWeightsOut) { // of gathered parameters, the own part
        for (const BufferView& view : context.writes)
            on.run(kernels::copyOf<std::byte>(copy.stored, storedPart(bytes(view.region), replica)));
        return;
    }
    if (context.task->kind == TaskKind::CopyWeightsIn) {
        for (const BufferView& view : context.reads)
            on.run(kernels::copyOf<std::byte>(bytes(view.region), storedPart(copy.stored, view.description.replica)));
        return;
    }
    const bool isShare = m_program->sharesParametersOfReplicas();
    const std::span<float> parameters = isBf16() || isShare ? copy.parameters : partOf(copy.parameters, replica, 1);
    const std::span<float> gradients =
        m_program->sharesGradientsOfReplicas() ? copy.keptGradients : partOf(copy.gradients, replica, 1);
    optimizer.update(on, context.step + 1, parameters, gradients, copy.state);
    const std::span<std::byte> stored = isShare ? copy.stored : storedPart(copy.stored, replica);
    if (isBf16())
        on.run(kernels::Narrow{parameters, {reinterpret_cast<std::uint16_t*>(stored.data()), parameters.size()}});
    for (const BufferView& view : context.writes)
        on.run(kernels::copyOf<std::byte>(stored, bytes(view.region)));
}

std::span<const float> TrainedWork::onHost(BufferKind kind, int stage, int replica, int device) const
{
    const auto found = m_buffers.find({kind, stage, replica, device});
    if (found == m_buffers.end())
        return {};
    if (isOnHost(device))
        return floats(m_regions[found->second]);
    const auto mirror = m_mirrors.find(found->second);
    if (mirror == m_mirrors.end())
        throw Error(fmt::format("stage {}", stage), "its values are on another device, and were not fetched",
                    "this is a fault of the program: please report it with the design");
    return {reinterpret_cast<const float*>(mirror->second.data()), mirror->second.size() / sizeof(float)};
}

std::vector<float> TrainedWork::valuesOf(BufferKind kind, int stage, std::size_t count,
                                         const std::function<int(int replica)>& deviceOf, int replica) const
{
    const bool gradients = kind == BufferKind::Gradients;
    const bool hasRoomForAll = gradients && !m_program->sharesGradientsOfReplicas();
    const bool inShares =
        m_program->sharesParametersOfReplicas() || (m_program->sharesOptimizer() && (gradients || isBf16()));
    const auto copyFrom = [&](int from, ReplicaShare share, std::vector<float>& values) {
        const std::span<const float> found =
            onHost(gradients ? kindOfGradients() : kindOfParameters(), stage, from, deviceOf(from));
        if (found.empty() && share.count() > 0)
            throw Error(fmt::format("stage {}", stage), "has no memory for its values",
                        "this is a fault of the program: please report it with the design");
        std::copy_n(found.begin() + (hasRoomForAll ? share.begin : 0), share.count(), values.begin() + share.begin);
    };
    std::vector<float> values(count);
    if (!inShares)
        copyFrom(replica, {0, static_cast<std::int64_t>(count)}, values);
    for (int from = 0; inShares && from < m_program->replicas(); ++from)
        copyFrom(from, shareOf(count, from), values);
    return values;
}

} // namespace pipewright
