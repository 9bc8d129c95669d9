// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/training/keptchoices.h"

#include <algorithm>
#include <type_traits>

namespace pipewright {

void KeepingChoices::issue(kernels::Operation operation, const void* call, std::size_t,
                           kernels::StoredOperands stored) const
{
    kernels::visit(operation, call, [this, stored](const auto& known, const char*) {
        m_on.runStored(known, stored);
        if constexpr (std::is_same_v<std::decay_t<decltype(known)>, kernels::RouteTokens>) {
            m_on.copy(std::span<const std::int32_t>(known.choice), m_left.first(known.choice.size()));
            m_left = m_left.subspan(known.choice.size());
        }
    });
}

KeptChoices::KeptChoices(std::vector<std::int64_t> chosen, int microbatches)
    : m_chosen(std::move(chosen)), m_microbatches(static_cast<std::size_t>(microbatches)),
      m_deviceOf(m_chosen.size() * m_microbatches), m_on(m_deviceOf.size())
{
    for (const std::int64_t count : m_chosen)
        m_choices.resize(m_choices.size() + m_microbatches, std::vector<std::int32_t>(std::size_t(count)));
}

bool KeptChoices::isKept(const Task& task, int device) const
{
    return task.kind == TaskKind::Compute && task.op == Op::F && task.device == device && m_chosen[task.stage] > 0;
}

Bytes KeptChoices::bytesOn(const Program& program, int device, const Capabilities& capabilities) const
{
    Bytes bytes = 0;
    for (const Task& task : program.tasks)
        if (!capabilities.hostAddressable && isKept(task, device))
            bytes += m_chosen[task.stage] * Bytes(sizeof(std::int32_t));
    return bytes;
}

void KeptChoices::prepare(const Program& program, Backend& backend)
{
    m_places.clear();
    m_places.resize(program.devices.size());
    for (int d = 0; d < static_cast<int>(m_places.size()); ++d) {
        if (!backend.isLocal(d)) // it is of the same kind
            continue;
        Device& device = backend.device(d);
        m_isAnywhere = !device.capabilities().hostAddressable
                       && std::any_of(m_chosen.begin(), m_chosen.end(), [](std::int64_t count) { return count > 0; });
        const Bytes bytes = bytesOn(program, d, device.capabilities());
        if (bytes == 0)
            continue;
        m_places[d] = {&device, device.createStream(), device.allocate(bytes)};
        auto* next = reinterpret_cast<std::int32_t*>(m_places[d].memory->region().data);
        for (const Task& task : program.tasks)
            if (isKept(task, d)) {
                m_deviceOf[blockOf(task)] = static_cast<std::size_t>(d);
                m_on[blockOf(task)] = {next, static_cast<std::size_t>(m_chosen[task.stage])};
                next += m_chosen[task.stage];
            }
    }
}

void KeptChoices::fetch()
{
    for (std::size_t block = 0; block < m_on.size(); ++block)
        if (isLocal(block)) {
            const Place& from = m_places[m_deviceOf[block]];
            from.device->read(*from.stream,
                              {reinterpret_cast<std::byte*>(m_on[block].data()), Bytes(m_on[block].size_bytes())},
                              m_choices[block].data());
        }
}

} // namespace pipewright
