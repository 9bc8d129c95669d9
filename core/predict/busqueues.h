// SPDX-License-Identifier: GPL-3.0-or-later
// When everything happens in a Program whose transfers share buses (Program::busOfLink). Which of them passes first
// depends on the times themselves, so this is a simulation, not a longest path. Programs without a bus need none of it.
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

    const Program& m_program;
    std::uint32_t m_buses = 0;
    std::vector<std::uint32_t> m_busOf;         ///< per task
    std::vector<Nanoseconds> m_held;            ///< per task: for how long it holds its bus
    std::vector<std::uint32_t> m_inputs;        ///< per task: how many tasks it waits for
    std::vector<std::uint32_t> m_followerBegin; ///< per task and one more, into m_followers
    std::vector<TaskId> m_followers;            ///< what waits for it
};

/// For each transfer the last one that began to pass its bus before it in this timeline; none for all other tasks.
/// Empty when the Program has no bus. O(tasks log tasks).
std::vector<TaskId> passedBefore(const Program& program, const Timeline& timeline);

/// "switch, pcie": the names of the Program's buses; empty when it has none.
std::string busNames(const Program& program);
/// How a bus serves its transfers, in one sentence.
std::string_view busDiscipline();

} // namespace pipewright
