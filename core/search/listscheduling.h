// SPDX-License-Identifier: GPL-3.0-or-later
// List scheduling by rules: a free device takes the block that a few parameters prefer, or waits for one that is known
// to arrive soon. The number of parameters does not grow with the number of microbatches, so trying many settings stays
// cheap where a search among orders is not. One run costs O(blocks × (stages of a device + devices)) and never exceeds
// the memory limit.
#pragma once

#include "core/search/searchmodel.h"

#include <functional>
#include <optional>
#include <random>
#include <vector>

namespace pipewright {

struct Policy {
    std::vector<int> ahead;    ///< per stage: forwards that may be started before their B is done
    double waitInForward = 0;  ///< leave an F for a B that arrives within this share of the F
    double waitInWeight = 1;   ///< leave a W for an F or B that arrives within this share of the W
    bool fillFirst = false;    ///< when an F and a B are both ready, take the F while `ahead` allows
    bool deepForward = true;   ///< when two forwards are ready, take the one of the later stage
    bool deepBackward = false; ///< when two backwards are ready, take the one of the later stage
    int owed = 1 << 20;        ///< Ws of a stage that may wait; with more waiting, a W comes before the stage's F
    /// Where stages recompute: a device that would wait makes again what it will need later. Otherwise a recompute runs
    /// as late as its backward allows. Nothing: no stage recomputes.
    std::optional<bool> recomputeEarly;
};

class PolicyRunner {
public:
    explicit PolicyRunner(const SearchModel& model);
    /// Nothing when locks and memory leave no block to run, or after a stop.
    std::optional<Lanes> run(const Policy& policy, const std::function<bool()>& stop = {});
    std::int64_t work() const { return m_work; } ///< tasks placed so far
    /// `ahead` of every stage: the forwards that fill `share` of the time until its first gradient, plus `more`.
    Policy initial(double share, int more) const;

private:
    struct Head {
        std::int32_t task = -1;
        Nanoseconds ready = 0; ///< when it may start; unknown while its input has not been started
        bool known = false;
    };
    struct Choice {
        std::int32_t task = -1;
        Nanoseconds wait = 0; ///< nothing starts before this time, which may be `unknown`
    };
    Choice choose(const Policy& policy, int device, Nanoseconds now);
    Head head(int stage, int kind) const;
    Head backwardHead(int stage) const;
    Head headOf(std::int32_t task, std::int32_t besides = -1) const;
    bool fits(int stage, std::int32_t task, Bytes live) const;
    bool fitsEarly(std::int32_t recompute, Bytes live) const;
    void start(std::int32_t task, Nanoseconds now);
    std::vector<std::int32_t>& sequence(int stage, int kind) { return m_sequence[taskKinds * stage + kind]; }

    static constexpr Nanoseconds unknown = Nanoseconds{1} << 62;
    const SearchModel& m_model;
    std::vector<std::vector<std::int32_t>> m_sequence; ///< per stage and kind: the order of its microbatches
    std::vector<std::int32_t> m_next;                  ///< how many of each sequence have run
    std::vector<Nanoseconds> m_end;
    std::vector<std::uint8_t> m_started;
    std::vector<std::vector<std::int32_t>> m_wakes; ///< per task: devices that wait for its value
    std::vector<Bytes> m_live, m_backwardSpace;
    std::vector<Nanoseconds> m_free, m_wake;
    Lanes m_lanes;
    std::int64_t m_work = 0;
};

/// Changes one or two of the parameters at random.
Policy varied(const Policy& policy, int microbatches, std::mt19937_64& random);

} // namespace pipewright
