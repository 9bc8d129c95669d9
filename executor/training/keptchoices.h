// SPDX-License-Identifier: GPL-3.0-or-later
// Where devices keep which experts tokens visit, for a reference that follows them (expertchoices.h): as many integers
// as a step's forwards choose, in a device's own memory beside the Program's buffers. A forward copies them there in
// the order of its stream, so that nobody waits; they come to the host after the step.
#pragma once

#include "executor/runtime/backend.h"
#include "executor/training/expertchoices.h"

#include <memory>
#include <vector>

namespace pipewright {

/// A device's operations which also copy what each RouteTokens chooses behind the last one's.
class KeepingChoices final : public kernels::Operations {
public:
    KeepingChoices(const kernels::Operations& on, std::span<std::int32_t> kept) : m_on(on), m_left(kept) {}
    bool keepsProbabilities() const override { return m_on.keepsProbabilities(); }
    bool computesWithStored() const override { return m_on.computesWithStored(); }

protected:
    void issue(kernels::Operation operation, const void* call, std::size_t bytes,
               kernels::StoredOperands stored) const override;

private:
    const kernels::Operations& m_on;
    mutable std::span<std::int32_t> m_left;
};

class KeptChoices {
public:
    /// `chosen`: per stage, what choicesOf() says of its layers.
    KeptChoices(std::vector<std::int64_t> chosen, int microbatches);

    /// What prepare() takes of a device's memory.
    Bytes bytesOn(const Program& program, int device, const Capabilities& capabilities) const;
    void prepare(const Program& program, Backend& backend);
    /// Room on its device for what this forward chooses; empty: none, or it is not kept.
    std::span<std::int32_t> on(const Task& forward) const { return m_on[blockOf(forward)]; }
    /// Those of this process's devices, behind all that they were given.
    void fetch();

    std::size_t blocks() const { return m_choices.size(); }
    /// Whether any device of the run keeps them.
    bool isAnywhere() const { return m_isAnywhere; }
    /// By stage · microbatches + microbatch: whether a device of this process made them, and where they are; empty for
    /// another number.
    bool isLocal(std::size_t block) const { return !m_on[block].empty(); }
    std::span<std::int32_t> of(std::size_t block)
    {
        return block < m_choices.size() ? std::span(m_choices[block]) : std::span<std::int32_t>();
    }
    const ExpertChoices& all() const { return m_choices; }

private:
    struct Place {
        Device* device = nullptr;
        std::unique_ptr<Stream> stream;
        std::unique_ptr<Allocation> memory;
    };
    std::size_t blockOf(const Task& task) const
    {
        return static_cast<std::size_t>(task.stage) * m_microbatches + static_cast<std::size_t>(task.microbatch);
    }
    bool isKept(const Task& task, int device) const;

    std::vector<std::int64_t> m_chosen;
    std::size_t m_microbatches;
    std::vector<Place> m_places;               ///< per device
    std::vector<std::size_t> m_deviceOf;       ///< per block
    std::vector<std::span<std::int32_t>> m_on; ///< per block, in the memory of its device
    ExpertChoices m_choices;
    bool m_isAnywhere = false;
};

} // namespace pipewright
