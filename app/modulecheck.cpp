// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/modulecheck.h"

#include "app/cancel.h"
#include "app/command.h"
#include "app/terminal.h"

#include <fmt/format.h>

namespace pipewright::app {

namespace {

Json toJson(const std::string& module, const ModuleLook& look)
{
    Json facts = Json::array();
    for (const ModuleFact& fact : look.facts)
        facts.push_back({{"kind", fact.kind}, {"what", fact.what}});
    return {{"module", module},
            {"valid", true},
            {"torch", look.torch},
            {"layers", look.layers},
            {"found", std::move(facts)}};
}

} // namespace

bool isModule(const std::string& file)
{
    return file.find(".py:") != std::string::npos;
}

int checkModule(ModuleLookOptions options, bool json)
{
    options.cancel = cancelOnSignals();
    ModuleLook look;
    try {
        look = lookAtModule(options);
    } catch (const Error& error) {
        const std::string& where = error.diagnostics().front().where;
        if (where.starts_with("--") || where == "torch") // nothing was examined
            throw;
        throw Finding(error.diagnostics());
    }
    if (look.cancelled) {
        printDiagnostics({{Severity::Error, options.module, "cancelled", {}}});
        return exitFinding;
    }
    if (json) {
        printJson(toJson(options.module, look));
        return exitSuccess;
    }
    printText("{}: {} layers, PyTorch {}\n", options.module, look.layers.size(), look.torch);
    for (const ModuleFact& fact : look.facts)
        printText("{:<9} {}\n", fact.kind, fact.what);
    return exitSuccess;
}

} // namespace pipewright::app
