// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/stepchoice.h"

#include "app/terminal.h"
#include "core/base/formattedtext.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <optional>

namespace pipewright::app {

namespace {

std::optional<int> stepNumber(std::string_view text)
{
    int number = -1;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    const bool whole = error == std::errc{} && end == text.data() + text.size() && number >= 0;
    return whole ? std::optional(number) : std::nullopt;
}

} // namespace

void StepChoice::addTo(CLI::App& command)
{
    command
        .add_option(
            "--step", text,
            "the step: its number, median (the one of median length, the default), or typical (every block at its "
            "median)")
        ->type_name("N");
}

int StepChoice::number() const
{
    if (text.empty() || text == "median" || text == "typical")
        return -1;
    const std::optional<int> number = stepNumber(text);
    if (!number)
        throw Error("--step", "\"" + text + "\" is no step", "a number, median or typical");
    return *number;
}

StepRange parseStepRange(const std::string& text, const std::string& option)
{
    const std::string_view all = text;
    const std::size_t dash = all.find('-');
    const std::optional<int> first = stepNumber(all.substr(0, dash));
    const std::optional<int> last = dash == std::string_view::npos ? first : stepNumber(all.substr(dash + 1));
    if (!first || !last || *last < *first)
        throw Error(option, "\"" + text + "\" names no steps", "a number, or the first and the last, such as 3-7");
    return {*first, *last};
}

StepChoice::Chosen StepChoice::of(const TraceReader& trace, const Program& program) const
{
    if (text == "typical") {
        if (trace.steps().empty())
            (void)trace.medianStep(); // throws the reason
        return {stepVariation(trace, program).typical, -1, "the typical step"};
    }
    const int given = number();
    const int step = given >= 0 ? given : trace.medianStep();
    return {trace.timeline(program, step), step, "step " + std::to_string(step)};
}

Json toJson(const StepLengths& lengths)
{
    Json outliers = Json::array();
    for (const StepLengths::Outlier& outlier : lengths.outliers)
        outliers.push_back({{"step", outlier.step}, {"length_ns", outlier.length}});
    return {{"count", lengths.steps},        {"shortest_ns", lengths.shortest}, {"median_ns", lengths.median},
            {"longest_ns", lengths.longest}, {"spread_ns", lengths.spread},     {"outliers", outliers}};
}

void print(const StepLengths& lengths)
{
    if (lengths.steps > 1)
        printText("\n{} steps after the first: {} to {}, median {}, eight of ten within {}\n", lengths.steps,
                  formatDuration(lengths.shortest), formatDuration(lengths.longest), formatDuration(lengths.median),
                  formatDuration(lengths.spread));
    if (!lengths.outliers.empty())
        printText("left out of what is typical: {}\n", outliersText(lengths));
}

std::string outliersText(const StepLengths& lengths)
{
    std::vector<std::string> texts;
    for (const StepLengths::Outlier& outlier : lengths.outliers)
        texts.push_back(fmt::format("step {} ({})", outlier.step, formatDuration(outlier.length)));
    return joined(texts, ", ");
}

} // namespace pipewright::app
