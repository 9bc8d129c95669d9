// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/torch/modulelook.h"

#include "executor/torch/moduleprogram.h"
#include "executor/torch/python.h"

#include <nlohmann/json.hpp>

namespace pipewright {

ModuleLook lookAtModule(const ModuleLookOptions& options)
{
    requireModuleFile(options.module);
    const ModuleProgram program{"pipewright.look",
                                "check",
                                options.python,
                                {{"module", options.module}, {"device", options.device}, {"seed", options.seed}},
                                options.cancel};
    ModuleLook look;
    look.cancelled = !program.run([&look](const nlohmann::json& report) {
        if (!report.contains("found"))
            return;
        look.facts = factsOfReport(report);
        look.layers = report.at("layers").get<std::vector<std::string>>();
        look.torch = report.at("torch");
    });
    return look;
}

} // namespace pipewright
