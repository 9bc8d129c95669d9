// SPDX-License-Identifier: GPL-3.0-or-later
// The times of a Program whose transfers share buses (Program::busOfLink). The order on a bus depends on the times
// themselves, so this is a simulation and not a longest path. Programs without a bus do not use it. A sum over replicas
// sends gradients in both directions: it needs its two devices and the wires of both directions at the same time.
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
    /// The buses of a task, and how long it occupies them: one direction, and for a sum also the way back.
    struct Use {
        std::uint32_t bus = noBus, back = noBus; ///< noBus in `back` also where it is the same bus
        Nanoseconds held = 0, heldBack = 0;
    };

    const Program& m_program;
    std::uint32_t m_buses = 0;
    std::vector<Use> m_uses;                    ///< per task
    std::vector<std::uint32_t> m_inputs;        ///< per task: how many tasks it waits for
    std::vector<std::uint32_t> m_followerBegin; ///< per task and one more, into m_followers
    std::vector<TaskId> m_followers;            ///< the tasks that wait for it
};

/// The buses of a transfer, or in both directions of a sum over replicas or of a shared parameter; empty with a
/// dedicated wire, and for all other tasks.
struct BusesOfTask {
    std::string_view there, back;
    bool any() const { return !there.empty() || !back.empty(); }
};
BusesOfTask busesOf(const Program& program, const Task& task);
/// How long a task occupies each bus. A sum whose directions share a bus sends them in sequence: both times are in
/// `there`.
struct BusTimes {
    Nanoseconds there = 0, back = 0;
};
BusTimes busTimes(const Program& program, TaskId task, Nanoseconds duration, const Costs& costs);

/// For each transfer and each sum of gradients, the previous user of its bus in this timeline; none for all other
/// tasks.
/// Empty when the Program has no bus. O(tasks log tasks).
std::vector<TaskId> passedBefore(const Program& program, const Timeline& timeline);

/// "switch, pcie": the names of the Program's buses; empty when it has none.
std::string busNames(const Program& program);
/// How a bus serves its transfers, in one sentence.
std::string_view busDiscipline();

} // namespace pipewright
