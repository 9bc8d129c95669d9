// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/modeloptions.h"

#include "core/base/diagnostic.h"

#include <fmt/format.h>

namespace pipewright::app {

void ModelOptions::addTo(CLI::App& options)
{
    const auto takeFramework = [this](const std::string& name) {
        framework = frameworkNamed(name);
        if (!framework)
            throw Error("--framework", "\"" + name + "\" is not known", "use one of " + frameworkNames());
    };
    options
        .add_option_function<std::string>(
            "--framework", takeFramework,
            "what that framework keeps in memory besides: properties of the model, each of which the design states "
            "(what the model states, else none)")
        ->type_name("megatron|torchtitan|deepspeed|none");
    const auto takePrecision = [this](const std::string& name) {
        precision = precisionNamed(name);
        if (!precision)
            throw Error("--precision", "\"" + name + "\" is not known", fmt::format("use one of {}", precisionNames));
    };
    options
        .add_option_function<std::string>("--precision", takePrecision,
                                          "of the matrix products in a model's layers; fp8 and nvfp4 are products of a "
                                          "bf16 model (the model's own)")
        ->type_name("fp32|bf16|fp8|nvfp4");
}

} // namespace pipewright::app
