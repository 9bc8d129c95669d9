// SPDX-License-Identifier: GPL-3.0-or-later
// The option --sharding: how groups of devices share the stages that they hold.
#pragma once

#include "app/command.h"
#include "core/design/design.h"

#include <string>

namespace pipewright::app {

class ShardingChoice {
public:
    explicit ShardingChoice(CLI::App& command);

    /// The design with such a plan for every group's stage, if one was asked for. Throws Error.
    Design applied(Design design) const;

private:
    CLI::App& m_command;
    std::string m_name;
};

/// "hap, even, …"
std::string strategyNames();
/// Throws Error (where: "--sharding") for an unknown name.
sharding::Strategy parseStrategy(const std::string& name);

} // namespace pipewright::app
