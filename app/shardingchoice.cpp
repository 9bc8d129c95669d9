// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/shardingchoice.h"

#include "core/base/diagnostic.h"
#include "core/design/stageplans.h"

#include <fmt/format.h>

namespace pipewright::app {

ShardingChoice::ShardingChoice(CLI::App& command) : m_command(command)
{
    m_command
        .add_option("--sharding,--plan", m_name,
                    "how groups of devices share their stages, of: " + strategyNames()
                        + " (what the design states, else hap, found anew)")
        ->type_name("NAME");
}

Design ShardingChoice::applied(Design design) const
{
    if (m_command.count("--sharding") == 0)
        return design;
    const sharding::Strategy strategy = parseStrategy(m_name);
    try {
        return withStrategy(design, strategy);
    } catch (const Error& error) {
        Diagnostics found = error.diagnostics();
        for (Diagnostic& diagnostic : found)
            if (diagnostic.where == "sharding" || diagnostic.where == "plan")
                diagnostic.where = "--sharding";
        throw Error(std::move(found));
    }
}

std::string strategyNames()
{
    std::string names;
    for (const sharding::StrategyFacts& facts : sharding::strategies())
        names += fmt::format("{}{}", names.empty() ? "" : ", ", facts.name);
    return names;
}

sharding::Strategy parseStrategy(const std::string& name)
{
    const auto found = sharding::strategyNamed(name);
    if (!found)
        throw Error("--sharding", inQuotes(name) + " is no sharding", "use one of " + strategyNames());
    return *found;
}

} // namespace pipewright::app
