// SPDX-License-Identifier: GPL-3.0-or-later
// Which options of a design change it: of what family, and beside which other options. An option that would change
// nothing is refused with what to do instead, so that nobody takes a design for another one. Every option has a rule;
// one without a rule is refused too.
#pragma once

#include "core/base/diagnostic.h"
#include "core/design/designbuilder.h"

#include <string_view>
#include <vector>

namespace pipewright {

/// The options that have a rule, as on the command line.
std::vector<std::string_view> optionsWithRules();

/// Throws Error with all options of DesignRequest::given that change nothing, as far as this is known before the
/// schedule is made.
void refuseUnused(const DesignRequest& request);
/// The same for what the schedule decides.
void refuseUnused(const DesignRequest& request, const Schedule& schedule);

/// The error for an option that a family does not use.
Error doesNothing(std::string_view option, const Family& family);

} // namespace pipewright
