// SPDX-License-Identifier: GPL-3.0-or-later
// The options that say how much times vary, and by which of the times under noise schedules are ranked.
#pragma once

#include "app/command.h"

#include "core/predict/spread.h"

#include <optional>
#include <string>

namespace pipewright::app {

class NoiseOptions {
public:
    /// `by`: what --by does, as its help says. The command's --seed is for the samples too.
    NoiseOptions(Command command, const std::string& by);

    /// Nothing when no spread was given. Throws Error for one that is none, or that the costs do not know.
    std::optional<SpreadOptions> noise(std::uint64_t seed, const Costs& costs) const;
    /// Throws Error for a time under noise without any.
    RankBy by() const;
    const std::string& byName() const { return m_by; }

private:
    std::string m_spread, m_deviceSpread, m_by = "makespan";
    int m_samples = 400;
};

Json spreadToJson(const SpreadOptions& noise, const StepSpread& step);
std::string describe(const SpreadOptions& noise); ///< "blocks ± 5.00 %, devices ± 0.00 %, 400 samples, seed 1"

} // namespace pipewright::app
