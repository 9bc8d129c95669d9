// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/training/keptchoices.h"

namespace pipewright {

void KeepingChoices::issue(kernels::Operation operation, const void* call, std::size_t,
                           kernels::StoredOperands stored) const
{
    kernels::visit(operation, call, [this, stored](const auto& known, const char*) {
        m_on.runStored(known, stored);
        if (const std::span<std::int32_t> chosen = chosenBy(known); !chosen.empty()) {
            m_on.copy(std::span<const std::int32_t>(chosen), m_left.first(chosen.size()));
            m_left = m_left.subspan(chosen.size());
        }
    });
}

Bytes KeptChoices::bytesOn(const Program& program, int device, const Capabilities& capabilities) const
{
    std::int64_t count = 0;
    for (TaskId t = 0; t < program.tasks.size() && !capabilities.hostAddressable; ++t)
        if (program.tasks[t].device == device)
            count += m_count(program, t);
    return count * Bytes(sizeof(std::int32_t));
}

void KeptChoices::prepare(const Program& program, Backend& backend)
{
    m_kept.clear();
    m_places.clear();
    m_places.resize(program.devices.size());
    for (TaskId t = 0; t < program.tasks.size(); ++t)
        if (const std::int64_t count = m_count(program, t); count > 0) {
            Kept& kept = m_kept[t];
            kept.device = static_cast<std::size_t>(program.tasks[t].device);
            kept.values.resize(static_cast<std::size_t>(count));
        }
    for (std::size_t d = 0; d < m_places.size(); ++d) {
        if (!backend.isLocal(static_cast<int>(d))) // another process's device is of the same kind as this one's
            continue;
        Device& device = backend.device(static_cast<int>(d));
        const bool onHost = device.capabilities().hostAddressable;
        m_isAnywhere = !onHost || m_keeps == On::AllDevices;
        const Bytes bytes = bytesOn(program, static_cast<int>(d), device.capabilities());
        std::int32_t* next = nullptr;
        if (bytes > 0) {
            m_places[d] = {&device, device.createStream(), device.allocate(bytes)};
            next = reinterpret_cast<std::int32_t*>(m_places[d].memory->region().data);
        }
        for (auto& [task, kept] : m_kept) {
            if (kept.device != d || !m_isAnywhere)
                continue;
            kept.on = onHost ? std::span(kept.values) : std::span(next, kept.values.size());
            next += onHost ? 0 : kept.values.size();
        }
    }
}

std::span<std::int32_t> KeptChoices::on(TaskId task) const
{
    const auto found = m_kept.find(task);
    return found == m_kept.end() ? std::span<std::int32_t>() : found->second.on;
}

std::vector<TaskId> KeptChoices::here() const
{
    std::vector<TaskId> tasks;
    for (const auto& [task, kept] : m_kept)
        if (!kept.on.empty())
            tasks.push_back(task);
    return tasks;
}

std::span<std::int32_t> KeptChoices::of(TaskId task)
{
    const auto found = m_kept.find(task);
    return found == m_kept.end() ? std::span<std::int32_t>() : std::span(found->second.values);
}

std::span<const std::int32_t> KeptChoices::of(TaskId task) const
{
    const auto found = m_kept.find(task);
    return found == m_kept.end() ? std::span<const std::int32_t>() : std::span(found->second.values);
}

ExpertChoices KeptChoices::byBlock(const Program& program) const
{
    const auto microbatches = static_cast<std::size_t>(program.microbatches);
    ExpertChoices choices(static_cast<std::size_t>(program.stages()) * microbatches);
    for (const auto& [t, kept] : m_kept) {
        const Task& task = program.tasks[t];
        choices[static_cast<std::size_t>(task.stage) * microbatches + static_cast<std::size_t>(task.microbatch())] =
            kept.values;
    }
    return choices;
}

void KeptChoices::fetch()
{
    for (auto& [task, kept] : m_kept)
        if (const Place& from = m_places[kept.device]; from.memory)
            from.device->read(*from.stream, {reinterpret_cast<std::byte*>(kept.on.data()), Bytes(kept.on.size_bytes())},
                              kept.values.data());
}

} // namespace pipewright
