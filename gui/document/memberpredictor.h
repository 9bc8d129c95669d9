// SPDX-License-Identifier: GPL-3.0-or-later
// Predicts what the members of a design's groups run, and with it the memory of the groups: that of each one's fullest
// member. What takes long, planning and measuring the members' stages, does not depend on the order of the blocks and
// is kept, so that predicting again after an edit of the order is quick. For any thread.
#pragma once

#include "core/design/groupstages.h"
#include "core/predict/predict.h"

#include <QString>

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>

namespace pipewright {

class MemberPredictor {
public:
    /// Of a design, whatever the order of its blocks.
    struct Stages {
        GroupStages stages;
        Costs costs; ///< with the bytes of every group's fullest member
        Dataflow dataflow;
    };
    using Measure = std::function<Stages(const Design&)>;

    MemberPredictor();                         ///< bytes are a formula's
    explicit MemberPredictor(Measure measure); ///< may throw Error

    struct Members {
        std::shared_ptr<const Stages> stages;
        MemberProgram program;
        Prediction prediction;
    };
    /// Throws Error: with whyNoMembers(), as `measure` does, and where the members would hang.
    Members members(const Design& design);

    enum class Patience : std::uint8_t {
        Quick, ///< members that would take longer are left out
        Any,
    };
    /// As pipewright::predictPlaced(), with the members' memory where they run (runsMemberByMember()) and every block
    /// has its place; without it there are no curves. Throws Error where that cannot run; why members cannot, members()
    /// says.
    Prediction predictPlaced(const Design& design, Patience patience);

    /// One that knows nothing yet, for work beside this one's, whose designs would take the place of this one's.
    std::shared_ptr<MemberPredictor> another() const { return std::make_shared<MemberPredictor>(m_measure); }

    static constexpr double quickMilliseconds = 50;
    void setQuick(double milliseconds) { m_quick = milliseconds; } ///< for tests; as a rule quickMilliseconds

private:
    struct Known {
        Design of; ///< without orders
        std::shared_ptr<const Stages> stages;
        std::atomic<double> milliseconds{-1}; ///< that the last prediction with them took; negative: there was none
    };
    static Design withoutOrder(Design design);
    std::shared_ptr<Known> find(const Design& key);
    Members members(const Design& design, Known& known);

    const Measure m_measure;
    std::atomic<double> m_quick{quickMilliseconds};
    std::mutex m_mutex;                         ///< guards what follows
    std::deque<std::shared_ptr<Known>> m_known; ///< the last ones
};

/// Whether the prediction's memory is the groups' own, which is not shown where their members run.
bool isMemoryPending(const Design& design, const Prediction& prediction);

/// What stands in place of such a memory.
struct PendingMemory {
    QString words; ///< short: "…", "after the drop"
    QString why;   ///< a sentence
};
PendingMemory pendingUntilDrop(); ///< of a drag

} // namespace pipewright
