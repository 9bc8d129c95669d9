// SPDX-License-Identifier: GPL-3.0-or-later
// Work that computes checksums, so that a wrong, stale or late buffer changes the result of a run.
#pragma once

#include "executor/runtime/stagework.h"

#include <cstring>
#include <functional>
#include <vector>

namespace pipewright::test {

/// Every buffer that a task writes is filled from what it reads, its own name and the step; weight
/// gradients add up. Any stale, early or misplaced read changes the sums.
class ChecksumWork : public StageWork {
public:
    void prepare(const Program& program, std::span<const Region> regions) override
    {
        m_program = &program;
        m_gradients.resize(static_cast<std::size_t>(program.stages() * program.replicas()));
        for (BufferId b = 0; b < program.buffers.size(); ++b) {
            if (program.buffers[b].kind == BufferKind::Gradients)
                m_gradients[gradientIndex(program.buffers[b].stage, program.buffers[b].replica)] = regions[b];
        }
    }
    void beginStep(int) override
    {
        for (const Region& region : m_gradients)
            std::memset(region.data, 0, static_cast<std::size_t>(region.bytes));
    }
    double endStep(int) override { return noLoss; }
    void compute(const TaskContext& context) override
    {
        if (onCompute)
            onCompute(context);
        std::uint64_t sum =
            0x9e3779b97f4a7c15u * (context.task->microbatch() + 1) + static_cast<std::uint64_t>(context.task->op);
        for (const BufferView& view : context.reads)
            sum = fold(sum, view.region);
        for (const BufferView& view : context.writes)
            fill(sum, view.region);
        for (const BufferView& view : context.reads)
            if (view.description.kind == BufferKind::SequenceGradient) // every piece adds to it
                fill(sum, view.region);
        if (context.task->op == Op::B || context.task->op == Op::W) {
            const Region gradients = m_gradients[gradientIndex(context.task->stage, context.task->replica)];
            for (Bytes i = 0; i + 8 <= gradients.bytes; i += 8) {
                std::uint64_t value;
                std::memcpy(&value, gradients.data + i, 8);
                value = value * 3 + (sum ^ static_cast<std::uint64_t>(i)); // order of microbatches matters
                std::memcpy(gradients.data + i, &value, 8);
            }
        }
    }
    void update(const TaskContext&) override {}
    Region sharedPart(const Task& reduce, const BufferView& gradients) override
    {
        return reduce.kind == TaskKind::ReplicaSum ? gradients.region : Region{gradients.region.data, 96};
    }
    void reduce(const TaskContext&, Region own, Region theirs, bool both) override
    {
        for (Bytes i = 0; i + 8 <= own.bytes; i += 8) {
            std::uint64_t a, b;
            std::memcpy(&a, own.data + i, 8);
            std::memcpy(&b, theirs.data + i, 8);
            a += b;
            std::memcpy(own.data + i, &a, 8);
            if (both)
                std::memcpy(theirs.data + i, &a, 8);
        }
    }

    /// The gradient sums of all stages and replicas, as bytes.
    std::vector<std::byte> result() const
    {
        std::vector<std::byte> bytes;
        for (const Region& region : m_gradients)
            bytes.insert(bytes.end(), region.data, region.data + region.bytes);
        return bytes;
    }

    std::function<void(const TaskContext&)> onCompute;

private:
    std::size_t gradientIndex(int stage, int replica) const
    {
        return static_cast<std::size_t>(replica * m_program->stages() + stage);
    }
    static void fill(std::uint64_t& sum, Region region)
    {
        for (Bytes i = 0; i < region.bytes; ++i) {
            sum = sum * 6364136223846793005u + 1442695040888963407u;
            region.data[i] = static_cast<std::byte>(sum >> 56);
        }
    }
    static std::uint64_t fold(std::uint64_t sum, Region region)
    {
        for (Bytes i = 0; i < region.bytes; ++i)
            sum = (sum ^ static_cast<std::uint64_t>(region.data[i])) * 1099511628211u;
        return sum;
    }
    const Program* m_program = nullptr;
    std::vector<Region> m_gradients;
};

} // namespace pipewright::test
