// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/modeloptions.h"

#include "core/base/diagnostic.h"
#include "core/base/formattedtext.h"

#include <string_view>
#include <vector>

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
    std::vector<std::string_view> known;
    for (const NamedPrecision& each : precisions)
        known.push_back(each.name);
    const auto takePrecision = [this, known](const std::string& name) {
        precision = precisionNamed(name);
        if (!precision)
            throw Error("--precision", "\"" + name + "\" is not known", "use one of " + joined(known, ", "));
    };
    options
        .add_option_function<std::string>("--precision", takePrecision,
                                          "of the matrix products in a model's layers; fp8 and nvfp4 are products of a "
                                          "bf16 model, with -parameters one that holds and gathers what they read in "
                                          "this type alone (Megatron-LM's --fp8-param-gather) (the model's own)")
        ->type_name(joined(known, "|"));
}

} // namespace pipewright::app
