// SPDX-License-Identifier: GPL-3.0-or-later
// Predicts the step of the members of a design's groups, and the memory of each group, which is that of its fullest
// member. Planning and measuring the members' stages takes long but does not depend on the order of the blocks. These
// results are kept, so the prediction after an edit of the order is quick. Thread-safe.
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
    /// The results for a design that do not depend on the order of its blocks.
    struct Stages {
        GroupStages stages;
        Costs costs; ///< with the bytes of every group's fullest member
        Dataflow dataflow;
    };
    using Measure = std::function<Stages(const Design&)>;

    MemberPredictor();                         ///< bytes are computed by formula
    explicit MemberPredictor(Measure measure); ///< may throw Error

    struct Members {
        std::shared_ptr<const Stages> stages;
        MemberProgram program;
        Prediction prediction;
    };
    /// Throws Error with whyNoMembers(), when `measure` throws, and when the members would deadlock.
    Members members(const Design& design);

    enum class Patience : std::uint8_t {
        Quick, ///< members that would take longer are left out
        Any,
    };
    /// As pipewright::predictPlaced(), with the members' memory when the design runs member by member
    /// (runsMemberByMember()) and every block is placed; without the members' memory its timeline has no memory curves.
    /// Throws Error when the groups cannot run. When only the members cannot, members() gives the reason.
    Prediction predictPlaced(const Design& design, Patience patience);

    /// A predictor with an empty cache, for parallel work on other designs, which would evict the entries of this one.
    std::shared_ptr<MemberPredictor> another() const { return std::make_shared<MemberPredictor>(m_measure); }

    static constexpr double quickMilliseconds = 50;
    void setQuick(double milliseconds) { m_quick = milliseconds; } ///< for tests; as a rule quickMilliseconds

private:
    struct Known {
        Design of; ///< without orders
        std::shared_ptr<const Stages> stages;
        std::atomic<double> milliseconds{-1}; ///< duration of the last prediction with them; negative: none yet
    };
    static Design withoutOrder(Design design);
    std::shared_ptr<Known> find(const Design& key);
    Members members(const Design& design, Known& known);

    const Measure m_measure;
    std::atomic<double> m_quick{quickMilliseconds};
    std::mutex m_mutex;                         ///< guards what follows
    std::deque<std::shared_ptr<Known>> m_known; ///< the last ones
};

/// True when the prediction still has the memory of the groups, although their members run it: that memory is not
/// shown.
bool isMemoryPending(const Design& design, const Prediction& prediction);

/// What is shown in place of such a memory.
struct PendingMemory {
    QString words; ///< short: "…", "after the drop"
    QString why;   ///< a sentence
};
PendingMemory pendingUntilDrop(); ///< of a drag

} // namespace pipewright
