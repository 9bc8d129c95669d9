// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/torch/torchstate.h"

#include "core/base/diagnostic.h"
#include "core/json/jsontext.h"
#include "executor/torch/python.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace pipewright {

TorchState torchState(const std::string& python, std::chrono::seconds atMost)
{
    using Json = nlohmann::json;
    TorchState state;
    state.reason = fmt::format("{} said nothing of PyTorch", python);
    try {
        RankProcesses process({pythonProcess(python, "pipewright.about", {"--record", "fd:3"})});
        const auto until = std::chrono::steady_clock::now() + atMost;
        while (process.anyRuns()) {
            for (const ProcessEvent& event : process.wait()) {
                const Json report = event.ended ? Json() : tryJsonFromText(event.line);
                if (!report.is_object() || !report.contains("about"))
                    continue;
                const Json& about = report["about"];
                state = {about.value("reason", ""), about.value("torch", ""), about.value("python", ""),
                         about.value("backends", std::vector<std::string>{}), about.value("gpus", 0)};
            }
            if (std::chrono::steady_clock::now() > until) {
                state.reason = fmt::format("{} needs more than {} s to import PyTorch", python, atMost.count());
                break;
            }
        }
    } catch (const Error& error) {
        state.reason = error.what();
    } catch (const Json::exception& error) {
        state.reason = fmt::format("the pipewright package of {} is of another version: {}", python, error.what());
    }
    return state;
}

} // namespace pipewright
