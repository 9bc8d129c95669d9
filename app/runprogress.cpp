// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/runprogress.h"

#include "core/base/units.h"
#include "core/json/jsonvalue.h"

#include <fmt/format.h>

#include <cmath>

namespace pipewright::app {

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
