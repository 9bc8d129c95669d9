// SPDX-License-Identifier: GPL-3.0-or-later
// The best ways to train a model on so many devices. The space is whole: every degree of tensor, context, expert,
// pipeline and data parallelism that the model allows, every size of microbatch that divides the batch, stages per
// device, what copies share out, recomputation of all stages alike, and every synchronous family. Lower bounds of time
// and memory (planbounds.h) leave out what cannot be among the results; all others are compiled and predicted as
// `predict` does it, the shortest bound first. So the list is complete within the costs, unless time ran out.
#pragma once

#include "core/design/design.h"
#include "core/plan/planspace.h"
#include "core/predict/spread.h"
#include "core/predict/stagememory.h"

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace pipewright {

struct PlanState; // planstate.h

struct PlanRequest : PlanSpace {
    ModelShape shape; ///< parallel, microbatchSize and sequencePieces are the plans'
    std::string source;
    /// A cluster preset of so many pipeline devices, each of so many members. Throws Error where there are none.
    std::function<std::shared_ptr<const Cluster>(int devices, std::int64_t members)> cluster;
    std::optional<Bytes> memoryLimit; ///< of a device; unset: its memory
    int top = 10;                     ///< plans in the list
    bool frontier = true;             ///< of step and memory, looked for once the best are proved
    std::optional<SpreadOptions> noise;
    int threads = 1;
    std::chrono::milliseconds timeLimit{0}; ///< 0: none
    std::function<bool()> isStopped;        ///< asked by every thread before each plan; unset: never
    /// Called by the thread that found something, one at a time.
    std::function<void(const struct PlanProgress&)> progress;
    /// Likewise, for each plan that is among the best or on the frontier when it is predicted.
    std::function<void(const struct PlanFound&)> found;
    /// What an interrupted search for the same had worked out; null: nothing. Best plans are those of a search that was
    /// never interrupted; so is the frontier where its tolerance is 0.
    std::shared_ptr<const PlanState> resumed;
    /// Called likewise every `saveEvery`, less often where it takes long, and once more when the search is stopped.
    std::function<void(const PlanState&)> save;
    std::chrono::milliseconds saveEvery{5000};
};

struct PlanProgress {
    std::size_t done = 0, settings = 0;
    Nanoseconds best = 0; ///< 0: none yet
    double seconds = 0;
    std::int64_t considered = 0, predicted = 0; ///< plans, see PlanResult
    bool bestProved = false;                    ///< the frontier is what is looked for now
};

/// What is known of a plan as soon as it is predicted.
struct PlanFound {
    PlanSetting setting;
    const Family* family = nullptr;
    int chunks = 1;
    Nanoseconds step = 0;
    Bytes peak = 0; ///< of the fullest device
    double tokensPerSecondPerDevice = 0;
};

/// One way to train, predicted.
struct TrainingPlan {
    PlanSetting setting;
    const Family* family = nullptr;
    int chunks = 1;
    Design design;
    Nanoseconds step = 0;
    StepSpread noisy;    ///< with PlanRequest::noise
    Bytes peak = 0;      ///< of the fullest device
    DeviceMemory memory; ///< of the first such device, by kind
    double tokensPerSecondPerDevice = 0, mfu = 0;
    std::vector<std::size_t> alike; ///< other plans of the list whose steps differ by less than the model can tell
    std::string why;                ///< where its time goes, and what the plan before it does better
};

/// Plans whose steps differ by less are called alike. The published runs of this program's tests are predicted within a
/// few percent, all too long or too short together; two plans of one model differ by less than each errs.
inline constexpr double planTolerance = 0.02;

struct PlanResult {
    std::vector<TrainingPlan> plans;   ///< shortest step first
    std::vector<std::size_t> frontier; ///< of the list: no other is as short and takes less memory …
    double frontierTolerance = 0; ///< … by more than this share of it: in large spaces plans that save less may lack
    std::int64_t considered = 0;  ///< plans of the space
    std::int64_t predicted = 0;   ///< of these, one by one; bounds left out the others
    struct Refused {
        std::int64_t memory = 0; ///< of the devices, or the limit
        std::int64_t shape = 0;  ///< degrees that the model does not allow, families that do not apply
        std::int64_t batch = 0;  ///< the batch cannot be divided so
    } refused;
    std::map<std::string, std::int64_t> reasons; ///< why plans were refused, in words, and how many
    bool complete = false;                       ///< no plan of the space is shorter than the best of the list
    bool frontierComplete = false;               ///< nor is one lacking on the frontier
    double seconds = 0;
    double bestSeconds = 0; ///< of these, until the best were proved
};

/// Throws Error for a request that holds no plan at all: unknown families, no device, no batch.
PlanResult findPlans(const PlanRequest& request);

/// The design of a plan. Throws Error with the reason when it cannot be.
Design designOf(const PlanRequest& request, const PlanSetting& setting, const Family& family, int chunks);

} // namespace pipewright
