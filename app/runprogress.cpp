// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/runprogress.h"

#include "app/command.h"
#include "app/terminal.h"

#include "core/base/units.h"
#include "core/json/jsonvalue.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace pipewright::app {

namespace {

std::string lossText(double loss)
{
    return std::isnan(loss) ? "NaN" : fmt::format("{:.4f}", loss);
}

} // namespace

void printLastStep(const RunResult& result)
{
    if (!result.stepTimes.empty())
        printText("last step   {}\n", formatDuration(result.stepTimes.back()));
    if (!std::all_of(result.losses.begin(), result.losses.end(), [](double loss) { return std::isnan(loss); }))
        printText("loss        {} -> {}\n", lossText(result.losses.front()), lossText(result.losses.back()));
    if (const auto waited = result.coreWaitShare(); waited && *waited >= 0.05)
        printText("busy        for {:.0f} % of their time devices waited for a processor core that others had:\n"
                  "            times are too long; run it on a quieter machine, or fewer devices\n",
                  100 * *waited);
}

void printTrace(const RunResult& result)
{
    if (result.traceFault.empty())
        printText("trace       {}\n", result.trace.empty() ? "none" : result.trace);
    else
        printText("trace       {}: {}\n", result.trace, result.traceFault);
}

int endRun(const RunResult& result, const std::string& trace, int steps)
{
    printDiagnostics(result.notes);
    if (result.cancelled)
        printDiagnostics({{Severity::Error, trace,
                           fmt::format("the run was cancelled after {} of {} steps", result.stepTimes.size(), steps),
                           result.traceFault.empty() ? "the trace holds the finished steps" : ""}});
    if (!result.traceFault.empty())
        return exitBadInput; // already reported when it happened
    return result.cancelled || (result.gradients && !result.gradients->holds()) ? exitFinding : exitSuccess;
}

void showStep(ProgressPrinter& printer, const RunProgress& now, int steps)
{
    printer.show(
        now.fraction,
        [&] {
            return fmt::format("step {} of {}{}  {} per step, {} left", now.step, steps,
                               std::isnan(now.loss) ? std::string() : fmt::format("  loss {:.4f}", now.loss),
                               formatDuration(now.stepTime), formatDuration(now.remaining));
        },
        [&] {
            return JsonValue{{"progress", now.fraction}, {"step", now.step},        {"steps", steps},
                             {"loss", now.loss},         {"step_ns", now.stepTime}, {"eta_ns", now.remaining}}
                .dump();
        });
}

} // namespace pipewright::app
