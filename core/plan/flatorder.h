// SPDX-License-Identifier: GPL-3.0-or-later
// The blocks of a family's schedule as one flat list, in an order in which they can run. It depends on the numbers of
// devices, stages and microbatches alone, so the plans that share these are timed over one list, each with its own
// costs, in a few nanoseconds a block. Families that search for their order have none: theirs depends on the costs.
#pragma once

#include "core/design/costs.h"
#include "core/families/family.h"

#include <cstdint>
#include <vector>

namespace pipewright {

struct FlatOrder {
    /// Bits of what is so on the task's device while it runs: all of its stages have run, the task makes weight
    /// gradients, all of its stages have made some and none has made all.
    enum Meanwhile : unsigned { AllRead = 1, MakesGradients = 2, AllHaveGradients = 4, meanwhiles = 8 };
    struct Task {
        std::uint32_t input = 0; ///< the task along the chain of stages that it waits for; tasks.size(): none
        std::uint16_t slot = 0;  ///< device and what holds meanwhile: see Meanwhile
        std::uint16_t kind = 0;  ///< see kindOf()
        std::size_t device() const { return slot / meanwhiles; }
    };
    std::vector<Task> tasks;
    std::vector<std::uint32_t> pairs; ///< tasks that run at the same time as the next one; ascending
    int devices = 0, stages = 0, pieces = 1;
    std::vector<std::vector<int>> deviceOfStage; ///< per replica of a pipeline that runs both ways
    /// Per stage, how often its parameters are gathered in a step when they are freed after each visit.
    std::vector<std::int64_t> gathers;
    std::vector<std::uint32_t> firstGradient; ///< per device: its first task that makes weight gradients
    std::vector<std::int32_t> mostLive;       ///< per device: forwards whose backward is still to come, at most

    int replicas() const { return static_cast<int>(deviceOfStage.size()); }
    std::size_t kinds() const { return deviceOfStage.size() * static_cast<std::size_t>(stages) * opCount; }
    std::size_t kindOf(Op op, int stage, int replica) const
    {
        return static_cast<std::size_t>(replica * stages + stage) * opCount + indexOf(op);
    }
    bool isCut() const { return pieces > 1; } ///< microbatches are pieces of sequences
};

/// Throws Error with the reason when the family does not apply. Precondition: it does not search for its order. About
/// 100 ns a block.
FlatOrder flatOrderOf(const Family& family, int devices, int chunks, int microbatches);

/// What blocks cost, by kind (FlatOrder::kindOf()).
struct KindCosts {
    std::vector<Nanoseconds> time, exchange; ///< of a block, and of this what a paired block may hide
    std::vector<Nanoseconds> delay;          ///< of its input
    std::vector<Bytes> kept, freed, workspace;
    explicit KindCosts(std::size_t kinds)
        : time(kinds), exchange(kinds), delay(kinds), kept(kinds), freed(kinds), workspace(kinds)
    {
    }
};

/// When the blocks end at the earliest, without what a step has besides, and what devices hold at least of activations.
struct FlatRun {
    std::vector<Nanoseconds> lastEnd;       ///< per device
    std::vector<Nanoseconds> lastGradient;  ///< per stage, the later of its replicas
    std::vector<Nanoseconds> firstGradient; ///< per device
    std::vector<Bytes> peaks;               ///< per FlatOrder::Task::slot
    /// The peak of a device while all of these hold; 0: they never do.
    Bytes peak(std::size_t device, unsigned meanwhile = 0) const;
};
/// O(tasks). `ends` is room for the times of tasks, kept between calls.
FlatRun runFlat(const FlatOrder& order, const KindCosts& costs, std::vector<Nanoseconds>& ends);

} // namespace pipewright
