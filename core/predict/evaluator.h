// SPDX-License-Identifier: GPL-3.0-or-later
// The predictor: start and end of every task of a fixed order, as one longest-path pass over flat
// arrays in topological order. Transfers overlap with compute and do not contend, unless the costs say that
// they block or share a bus.
#pragma once

#include "core/design/costs.h"
#include "core/predict/timeline.h"

namespace pipewright {

class Evaluator {
public:
    /// Keeps a reference to `program`, which must outlive it. O(tasks).
    Evaluator(const Program& program, const Costs& costs);
    /// New durations, same order. O(tasks).
    void setCosts(const Costs& costs);
    /// Fills timeline.start and timeline.end; leaves timeline.memory alone. Allocates nothing when the
    /// timeline already has the right size. O(tasks), about 1 ns each.
    void evaluate(Timeline& timeline) const;
    Nanoseconds duration(TaskId task) const { return m_nodes[task].duration; }

private:
    struct Node {
        TaskId after[2]; ///< the task itself where there is none
        Nanoseconds duration;
    };
    Nanoseconds reached(const Program::ExtraDependency& extra, const Timeline& timeline) const;

    const Program& m_program;
    std::vector<Node> m_nodes;
    std::vector<Nanoseconds> m_latency; ///< per extra dependency: of the shared link that it waits for
};

} // namespace pipewright
