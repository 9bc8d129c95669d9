// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/experimentprogress.h"

#include "executor/clock.h"
#include "executor/experimentreport.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <unistd.h>

namespace pipewright::app {

ExperimentProgressPrinter::ExperimentProgressPrinter(const std::string& choice) : m_start(steadyNow())
{
    if (choice != "auto" && choice != "bar" && choice != "json" && choice != "none")
        throw Error("--progress", "\"" + choice + "\" is none that is known", "use one of auto, bar, json, none");
    m_json = choice == "json";
    m_bar = choice == "bar" || (choice == "auto" && isatty(STDERR_FILENO) == 1);
}

ExperimentProgressPrinter::~ExperimentProgressPrinter()
{
    if (m_drawn)
        fmt::print(stderr, "\n");
}

void ExperimentProgressPrinter::show(const ExperimentProgress& now)
{
    const double fraction = now.fraction();
    const auto left = static_cast<Nanoseconds>(static_cast<double>(steadyNow() - m_start) * (1 - fraction) / fraction);
    if (m_json) {
        const nlohmann::ordered_json line{{"progress", fraction}, {"run", now.run},         {"runs", now.runs},
                                          {"design", now.design}, {"seed", now.seed},       {"update", now.update},
                                          {"updates", now.updates}, {"loss", now.loss},     {"eta_ns", left}};
        fmt::print(stderr, "{}\n", line.dump());
    } else if (m_bar) {
        m_drawn = true;
        constexpr int width = 30;
        const int full = static_cast<int>(fraction * width);
        fmt::print(stderr, "\r[{:=<{}}{:<{}}] run {} of {}, {} seed {}: update {} of {}  loss {:.4f}  {} left\033[K", "", full, "",
                   width - full, now.run + 1, now.runs, now.design, now.seed, now.update + 1, now.updates, now.loss,
                   formatDuration(left));
    }
}

void ExperimentProgressPrinter::show(const ExperimentRun& finished)
{
    if (!m_json)
        return;
    nlohmann::ordered_json run = toJson(finished);
    run.erase("loss");
    fmt::print(stderr, "{}\n", nlohmann::ordered_json{{"finished", std::move(run)}}.dump());
}

} // namespace pipewright::app
