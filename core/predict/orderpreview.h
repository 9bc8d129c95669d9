// SPDX-License-Identifier: GPL-3.0-or-later
// Predicts another order of one device's blocks fast enough for a drag: the compiled Program stays, only the edges
// along that device change, and the times are computed anew from the first moved block.
//
// Worth its 830 lines: two neighbours amid 200,000 blocks change places in 0.5 ms, amid a million in 4 ms; predicting
// the edited design takes 35 and 284 ms, and a drag has 16 for its frame (release, processor time; previewOtherOrder in
// tests/bench/bench_evaluate.cpp). From some 30,000 blocks on predicting takes more than DropPlanner allows itself.
// Without it a frame is shorter, 1.9 ms and not 5.4 amid 200,000 blocks, 2 and not 13 amid a million (dev, window of
// 1920, zoomed out), and shows no numbers before the cursor rests; with it 58 to 83 of 100 moves do.
//
// Overlapped pairs stay if their blocks are still adjacent; the blocks of the others run separately.
//
// Times and all numbers that follow from them equal those of the compiled result. Memory is approximate: blocks move
// with the buffers that they allocate, free and send, but every device keeps its present places of receives; after
// compiling, some values arrive a few blocks earlier or later.
#pragma once

#include "core/base/diagnostic.h"
#include "core/predict/evaluator.h"
#include "core/predict/lanemeter.h"
#include "core/predict/predict.h"

#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace pipewright {

class OrderPreview {
public:
    /// `present` must be the prediction of `design`; keeps references to both. O(tasks).
    OrderPreview(const Design& design, const Prediction& present);
    OrderPreview(const OrderPreview&) = delete;
    OrderPreview& operator=(const OrderPreview&) = delete;

    /// False when the Program does not have one simple chain of blocks per device: compile instead.
    bool possible() const { return m_possible; }

    /// The prediction when `device` runs its blocks in another order: `positions[i]` is the present position of the
    /// block that would stand at i. Null when that cannot run; `why` then has the reason. Its Program is for reading
    /// tasks and devices only: it has no operands and no order, and only the reordered device has instructions and a
    /// memory curve. Valid until the next call. O(tasks behind the first change).
    const Prediction* evaluate(int device, std::span<const std::uint32_t> positions, Diagnostics* why = nullptr);
    /// Tasks numbered below this have their present times in the result of the last evaluate().
    TaskId firstChanged() const { return m_unchanged; }

    /// Positions [first, last] at which one block of a device may stand while the others keep their order; its present
    /// position is included. Joined halves of the first stage have only their present position. The range may include
    /// the place between two joined halves, which is illegal for other blocks. O(tasks between first and last).
    struct Range {
        int first = 0, last = 0;
        bool operator==(const Range&) const = default;
    };
    /// Around overlapped pairs the range may be smaller than what is possible.
    Range legalRange(int device, int position);

private:
    /// The instructions from one block of the chosen device to the next: those that move with it, in `own`.
    struct Segment {
        std::uint32_t begin = 0, end = 0;
        std::vector<std::uint32_t> own, foreign;
    };
    struct Tail {
        TaskId task; ///< an update or reduction …
        int slot;    ///< … of which this input is the device's last block
    };

    bool isFirstOfPair(TaskId task) const
    {
        return !m_partner.empty() && m_partner[task] != none && m_partner[task] > task;
    }
    bool isSecondOfPair(TaskId task) const
    {
        return !m_partner.empty() && m_partner[task] != none && m_partner[task] < task;
    }
    void breakPairs(std::span<const std::uint32_t> positions, std::size_t from, std::size_t to);
    void breakPair(TaskId first);
    void joinPairs();
    void chooseDevice(int device);
    void splitInstructions();
    template<typename Use>
    void eachLocalInput(const Block& block, Use use) const;
    bool keepsLocalOrder(std::span<const std::uint32_t> positions, std::size_t from, std::size_t to,
                         Diagnostics* why) const;
    void chain(std::span<const std::uint32_t> positions, std::size_t from, std::size_t to);
    bool run(TaskId first, TaskId last);
    bool attempt(TaskId task);
    void rebuildMemory(std::span<const std::uint32_t> positions, std::size_t from, std::size_t to);
    void arrangeInstructions(std::span<const std::uint32_t> positions, std::size_t from, std::size_t to);
    void prepareMeters();
    Metrics measureFrom(TaskId first) const;
    Diagnostics describeStuck(TaskId first, TaskId last) const;
    TaskId unfinishedInput(TaskId task) const;

    const Design& m_design;
    const Prediction& m_present;
    bool m_possible = true;
    std::vector<std::vector<TaskId>> m_lanes; ///< per device: its compute tasks in order
    std::vector<std::vector<Tail>> m_tails;   ///< per device
    std::vector<TaskId> m_sequence;           ///< all tasks, each device's in the order that is tried
    /// Its Program's dependencies and overlaps are without the broken pairs.
    Prediction m_result;
    Evaluator m_evaluator;         ///< of m_result's Program, with the edges of the order that is tried
    std::vector<TaskId> m_partner; ///< per task; empty when nothing overlaps
    std::vector<TaskId> m_broken;  ///< the first task of each pair that the tried order separates
    TaskId m_unchanged = 0;        ///< m_result's times before this task are the present ones
    std::vector<TaskId> m_waiter, m_nextWaiter, m_stack;

    // The tasks that keep a device busy, in present order, and prefix sums over them at their present times, stored at
    // regular intervals. All devices share one array, because one sequential pass over memory is fast.
    struct Metered {
        TaskId task;
        std::uint16_t device;
        bool computes;
    };
    std::vector<Metered> m_metered;
    std::vector<std::vector<LaneMeter>> m_sums; ///< per device
    std::vector<TaskId> m_reductions;

    // Of the chosen device.
    int m_device = -1;
    std::map<Block, int> m_positionOf;
    std::vector<Bytes> m_kept, m_workspace;     ///< per instruction
    std::vector<Segment> m_segments;            ///< per block
    std::size_t m_movedFrom = 0, m_movedTo = 0; ///< blocks whose instructions are not in their present order
};

} // namespace pipewright
