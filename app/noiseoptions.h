// SPDX-License-Identifier: GPL-3.0-or-later
// The options for how much times vary, and for the time under noise by which schedules are ranked.
#pragma once

#include "app/command.h"

#include "core/predict/spread.h"

#include <optional>
#include <string>

namespace pipewright::app {

/// "5%" or "0.05"; empty: 0. Throws Error at `where`.
double parseShare(const std::string& text, const std::string& where);

class NoiseOptions {
public:
    /// `by`: the help text of --by; empty: nothing is ranked by it, and there is no such option. The command's --seed
    /// also seeds the samples.
    NoiseOptions(CLI::App& command, const std::string& by);

    /// Nothing when no spread was given. Throws Error for an invalid one, or one that needs spreads which the costs do
    /// not have.
    std::optional<SpreadOptions> noise(std::uint64_t seed, const Costs& costs) const;
    /// Throws Error when a time under noise is asked for without a spread.
    RankBy by() const;
    const std::string& byName() const { return m_by; }

private:
    std::string m_spread, m_deviceSpread, m_by = "makespan";
    int m_samples = 400;
};

Json spreadToJson(const SpreadOptions& noise, const StepSpread& step);
std::string describe(const SpreadOptions& noise); ///< "blocks ± 5.00 %, devices ± 0.00 %, 400 samples, seed 1"

} // namespace pipewright::app
