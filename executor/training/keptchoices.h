// SPDX-License-Identifier: GPL-3.0-or-later
// Where devices keep which experts tokens visit, for a reference that follows them (expertchoices.h): as many integers
// as a step's forwards choose, in a device's own memory beside the Program's buffers. A forward copies them there in
// the order of its stream, so that nobody waits; they come to the host after the step. Where the host reaches the
// device's memory they are in the host's at once.
#pragma once

#include "executor/runtime/backend.h"
#include "executor/training/expertchoices.h"

#include <functional>
#include <map>
#include <memory>
#include <vector>

namespace pipewright {

/// A device's operations which also copy what tokens choose behind what they chose last.
class KeepingChoices final : public kernels::Operations {
public:
    KeepingChoices(const kernels::Operations& on, std::span<std::int32_t> kept) : m_on(on), m_left(kept) {}
    bool keepsProbabilities() const override { return m_on.keepsProbabilities(); }
    bool computesWithStored() const override { return m_on.computesWithStored(); }
    /// Room for what is yet to be chosen.
    std::span<std::int32_t> left() const { return m_left; }

protected:
    void issue(kernels::Operation operation, const void* call, std::size_t bytes,
               kernels::StoredOperands stored) const override;

private:
    const kernels::Operations& m_on;
    mutable std::span<std::int32_t> m_left;
};

class KeptChoices {
public:
    /// How many numbers a task chooses on its device: 0 but of forwards with experts.
    using Count = std::function<std::int64_t(const Program& program, TaskId task)>;
    /// Who keeps them: devices whose memory the host cannot touch, which add up in another order than it; or all.
    enum class On { OtherMemory, AllDevices };
    KeptChoices(Count count, On on) : m_count(std::move(count)), m_keeps(on) {}

    /// What prepare() takes of a device's memory.
    Bytes bytesOn(const Program& program, int device, const Capabilities& capabilities) const;
    void prepare(const Program& program, Backend& backend);
    /// Where its device keeps what this task chooses; empty: it chooses nothing, or it is not kept here.
    std::span<std::int32_t> on(TaskId task) const;
    /// Those of this process's devices, behind all that they were given.
    void fetch();

    /// Whether any device of the run keeps them.
    bool isAnywhere() const { return m_isAnywhere && !m_kept.empty(); }
    /// The tasks whose choices this process's devices keep.
    std::vector<TaskId> here() const;
    /// On the host, where other processes' are to be put; empty for a task that chooses nothing.
    std::span<std::int32_t> of(TaskId task);
    std::span<const std::int32_t> of(TaskId task) const;
    /// As a reference of stages follows them.
    ExpertChoices byBlock(const Program& program) const;

private:
    struct Place {
        Device* device = nullptr;
        std::unique_ptr<Stream> stream;
        std::unique_ptr<Allocation> memory;
    };
    struct Kept {
        std::size_t device = 0;
        std::span<std::int32_t> on{}; ///< in the memory of its device; empty: another process's, or not kept
        std::vector<std::int32_t> values{};
    };

    Count m_count;
    On m_keeps;
    std::vector<Place> m_places; ///< per device; without memory where the host reaches the device's
    std::map<TaskId, Kept> m_kept;
    bool m_isAnywhere = false;
};

} // namespace pipewright
