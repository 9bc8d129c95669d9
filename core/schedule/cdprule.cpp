// SPDX-License-Identifier: GPL-3.0-or-later
// Cyclic Data Parallelism (Fournier and Oyallon, arXiv 2403.08837). CDP-v1 reads theta_{t-1}, CDP-v2 theta_t where it
// is there in time, with theta_{-1} = theta_0. O(1).
#include "core/schedule/weightrules.h"

#include <fmt/format.h>

#include <algorithm>

namespace pipewright {

std::int64_t cyclicTime(Op op, int stages, int stage, int microbatch)
{
    return std::int64_t{2} * microbatch + (makesActivation(op) ? stage : 2 * stages - 1 - stage);
}

namespace {

class Cyclic final : public VersionRule {
public:
    explicit Cyclic(bool freshest) : m_freshest(freshest) {}
    WeightAnswer forward(const WeightQuestion& block) const override
    {
        const bool fresh = m_freshest && block.inBatch + block.stage >= block.stages - 1;
        return {fresh ? block.batch : std::max(0, block.batch - 1)};
    }
    WeightAnswer backward(const WeightQuestion& block) const override { return forward(block); }
    bool namesVersions() const override { return true; }
    std::optional<Diagnostic> refuses(int stages, int batchSize) const override
    {
        if (batchSize == stages)
            return std::nullopt;
        return Diagnostic{Severity::Error, "schedule.weights",
                          fmt::format("Cyclic Data Parallelism has as many workers as stages; here {} microbatches "
                                      "make an update and there are {} stages",
                                      batchSize, stages),
                          "use as many stages as workers, one microbatch of each worker per update"};
    }

private:
    bool m_freshest;
};

} // namespace

std::unique_ptr<const VersionRule> cdpRule(bool freshest)
{
    return std::make_unique<Cyclic>(freshest);
}

} // namespace pipewright
