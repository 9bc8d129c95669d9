// SPDX-License-Identifier: GPL-3.0-or-later
// Where devices keep which experts tokens visit, for a reference that follows them (expertchoices.h): as many integers
// as a step's forwards choose, in the device's own memory beside the Program's buffers. A forward copies its choices
// there in stream order, so nothing waits; they are copied to the host after the step. Where the host can address the
// device's memory, they are written to the host's copy directly.
#pragma once

#include "executor/runtime/backend.h"
#include "executor/training/expertchoices.h"

#include <functional>
#include <map>
#include <memory>
#include <vector>

namespace pipewright {

/// A device's operations, which also append the experts that each call chooses to the kept ones.
class KeepingChoices final : public kernels::Operations {
public:
    KeepingChoices(const kernels::Operations& on, std::span<std::int32_t> kept) : m_on(on), m_left(kept) {}
    bool keepsProbabilities() const override { return m_on.keepsProbabilities(); }
    bool computesWithStored() const override { return m_on.computesWithStored(); }
    /// Room for the choices still to come.
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
    /// How many expert numbers a task chooses; 0 for all but forwards with experts.
    using Count = std::function<std::int64_t(const Program& program, TaskId task)>;
    /// Which devices keep choices: those whose memory the host cannot touch, which add up in another order than the
    /// host, or all.
    enum class On { OtherMemory, AllDevices };
    KeptChoices(Count count, On on) : m_count(std::move(count)), m_keeps(on) {}

    /// The device memory that prepare() allocates.
    Bytes bytesOn(const Program& program, int device, const Capabilities& capabilities) const;
    void prepare(const Program& program, Backend& backend);
    /// Where this task's choices are kept on its device; empty: it chooses nothing, or they are not kept here.
    std::span<std::int32_t> on(TaskId task) const;
    /// Between steps: copies the choices of this process's devices to the host.
    void fetch();

    /// Whether any device of the run keeps choices.
    bool isAnywhere() const { return m_isAnywhere && !m_kept.empty(); }
    /// The tasks whose choices this process's devices keep.
    std::vector<TaskId> here() const;
    /// This task's choices on the host, also the place for those of other processes; empty for a task that chooses
    /// nothing.
    std::span<std::int32_t> of(TaskId task);
    std::span<const std::int32_t> of(TaskId task) const;
    /// All choices in the form that a reference follows.
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
