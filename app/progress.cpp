// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/progress.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <unistd.h>

namespace pipewright::app {

namespace {

ProgressPrinter::Style styleOf(const std::string& choice)
{
    if (choice == "json")
        return ProgressPrinter::Style::Json;
    if (choice == "bar" || (choice == "auto" && isatty(STDERR_FILENO) == 1))
        return ProgressPrinter::Style::Bar;
    return ProgressPrinter::Style::Silent;
}

} // namespace

ProgressPrinter::ProgressPrinter(const std::string& choice, int steps) : m_style(styleOf(choice)), m_steps(steps)
{
    m_last.loss = std::nan("");
}

ProgressPrinter::~ProgressPrinter()
{
    if (m_drawn && m_style == Style::Bar)
        fmt::print(stderr, "\n");
}

void ProgressPrinter::show(const RunProgress& progress)
{
    m_last = progress;
    m_drawn = true;
    if (m_style == Style::Bar)
        showBar();
    else if (m_style == Style::Json)
        showJson();
}

void ProgressPrinter::finish()
{
    if (m_last.fraction >= 1)
        return;
    m_last.fraction = 1;
    m_last.remaining = 0;
    show(m_last);
}

void ProgressPrinter::showBar() const
{
    constexpr int width = 30;
    const int full = std::clamp(static_cast<int>(m_last.fraction * width), 0, width);
    std::string line = fmt::format("\r[{:=<{}}{:<{}}] step {} of {}", "", full, "", width - full, m_last.step, m_steps);
    if (!std::isnan(m_last.loss))
        line += fmt::format("  loss {:.4f}", m_last.loss);
    line += fmt::format("  {} per step, {} left", formatDuration(m_last.stepTime), formatDuration(m_last.remaining));
    fmt::print(stderr, "{}\033[K", line); // what an earlier, longer line left is erased
}

void ProgressPrinter::showJson() const
{
    nlohmann::ordered_json object{{"progress", m_last.fraction}, {"step", m_last.step}, {"steps", m_steps}};
    object["loss"] = std::isnan(m_last.loss) ? nlohmann::ordered_json() : nlohmann::ordered_json(m_last.loss);
    object["step_ns"] = m_last.stepTime;
    object["eta_ns"] = m_last.remaining;
    fmt::print(stderr, "{}\n", object.dump());
}

} // namespace pipewright::app
