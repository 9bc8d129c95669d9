// SPDX-License-Identifier: GPL-3.0-or-later
// When everything happens in a Program whose transfers share buses (Program::busOfLink). Which of them passes first
// depends on the times themselves, so this is a simulation, not a longest path. Programs without a bus need none of it.
// A sum over replicas sends gradients both ways: it waits for the wires of both at once, with its two devices.
#pragma once

#include "core/predict/timeline.h"

namespace pipewright {

class Evaluator;
struct Costs;

class BusQueues {
public:
    /// Keeps a reference to `program`. O(tasks).
    explicit BusQueues(const Program& program);
    /// `evaluator`: has the durations of its tasks.
    void setCosts(const Costs& costs, const Evaluator& evaluator);
    /// Fills start and end of a timeline that has the right size. O(tasks + transfers log transfers).
    void evaluate(const Evaluator& evaluator, Timeline& timeline) const;

private:
    static constexpr std::uint32_t noBus = none;
    /// What a task passes, and for how long it keeps others from it: there, and of a sum also back.
    struct Use {
        std::uint32_t bus = noBus, back = noBus; ///< noBus in `back` also where it is the same bus
        Nanoseconds held = 0, heldBack = 0;
    };

    const Program& m_program;
    std::uint32_t m_buses = 0;
    std::vector<Use> m_uses;                    ///< per task
    std::vector<std::uint32_t> m_inputs;        ///< per task: how many tasks it waits for
    std::vector<std::uint32_t> m_followerBegin; ///< per task and one more, into m_followers
    std::vector<TaskId> m_followers;            ///< what waits for it
};

/// The buses that a transfer passes, or a sum over replicas or of a shared parameter there and back; empty where it has
/// a wire of its own, and of all other tasks.
struct BusesOfTask {
    std::string_view there, back;
    bool any() const { return !there.empty() || !back.empty(); }
};
BusesOfTask busesOf(const Program& program, const Task& task);
/// How long it keeps others from each. A sum whose ways share a wire sends one after the other: both times in `there`.
struct BusTimes {
    Nanoseconds there = 0, back = 0;
};
BusTimes busTimes(const Program& program, TaskId task, Nanoseconds duration, const Costs& costs);

/// For each transfer, and each sum of gradients, the last that began to pass its bus before it in this timeline; none
/// for all other tasks.
/// Empty when the Program has no bus. O(tasks log tasks).
std::vector<TaskId> passedBefore(const Program& program, const Timeline& timeline);

/// "switch, pcie": the names of the Program's buses; empty when it has none.
std::string busNames(const Program& program);
/// How a bus serves its transfers, in one sentence.
std::string_view busDiscipline();

} // namespace pipewright
