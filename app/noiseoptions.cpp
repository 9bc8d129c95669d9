// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/noiseoptions.h"

#include "app/table.h"

#include <fmt/format.h>

#include <cstdlib>

namespace pipewright::app {

double parseShare(const std::string& text, const std::string& where)
{
    if (text.empty())
        return 0;
    char* end = nullptr;
    double share = std::strtod(text.c_str(), &end);
    const std::string_view unit(end);
    if (unit == "%")
        share /= 100;
    if (end == text.c_str() || (!unit.empty() && unit != "%") || !(share >= 0 && share <= 1))
        throw Error(where, "\"" + text + "\" is no share",
                    where == "--spread" ? "write a share of the time up to 100%, such as 5%; or measured"
                                        : "write a share up to 100%, such as 5%");
    return share;
}

NoiseOptions::NoiseOptions(CLI::App& command, const std::string& by)
{
    command
        .add_option(
            "--spread", m_spread,
            "by how much the time of every block varies, or \"measured\" for what calibrate found: gives the step's "
            "median and 95th percentile over sampled costs")
        ->type_name("SHARE");
    command
        .add_option("--device-spread", m_deviceSpread, "the same of devices, all of whose blocks are slower together")
        ->type_name("SHARE");
    command.add_option("--samples", m_samples, "steps sampled (400)")->type_name("N")->check(CLI::Range(1, 100'000));
    if (!by.empty())
        command.add_option("--by", m_by, by + ": makespan, median or p95")->type_name("WHAT");
}

std::optional<SpreadOptions> NoiseOptions::noise(std::uint64_t seed, const Costs& costs) const
{
    if (m_spread.empty() && m_deviceSpread.empty())
        return std::nullopt;
    SpreadOptions noise{.device = parseShare(m_deviceSpread, "--device-spread"), .samples = m_samples, .seed = seed};
    noise.measured = m_spread == "measured";
    if (!noise.measured)
        noise.block = parseShare(m_spread, "--spread");
    else if (!costs.hasSpread())
        throw Error("--spread", "nothing was measured of how these costs vary: they are " + costs.source,
                    "calibrate the design with a trace of several steps, or give a share, such as 5%");
    return noise;
}

RankBy NoiseOptions::by() const
{
    if (m_by == "makespan")
        return RankBy::Makespan;
    if (m_by != "median" && m_by != "p95")
        throw Error("--by", "\"" + m_by + "\" is none that is known", "use makespan, median or p95");
    if (m_spread.empty() && m_deviceSpread.empty())
        throw Error("--by", m_by + " needs to know how times vary", "give --spread or --device-spread, such as 5%");
    return m_by == "median" ? RankBy::Median : RankBy::P95;
}

Json spreadToJson(const SpreadOptions& noise, const StepSpread& step)
{
    return {{"block", noise.block}, {"measured", noise.measured}, {"device", noise.device}, {"samples", noise.samples},
            {"seed", noise.seed},   {"median_ns", step.median},   {"p95_ns", step.p95}};
}

std::string describe(const SpreadOptions& noise)
{
    return fmt::format("blocks {}, devices ± {}, {} samples, seed {}",
                       noise.measured ? "as measured" : "± " + percent(noise.block), percent(noise.device),
                       noise.samples, noise.seed);
}

} // namespace pipewright::app
