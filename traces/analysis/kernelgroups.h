// SPDX-License-Identifier: GPL-3.0-or-later
// Which kind of work a kernel is, by its name: product, attention, norm, communication and so on. The rules are a table
// in the resource folder (kernelgroups.json), where people add their own kernels.
#pragma once

#include "traces/store/activity.h"

#include <string>
#include <string_view>
#include <vector>

namespace pipewright {

class KernelGroups {
public:
    /// Throws Error: no such file, or its faults by line.
    explicit KernelGroups(const std::string& file);
    /// That of the resource folder, read once.
    static const KernelGroups& standard();

    /// Groups in the order of the table, the last one for all that no rule knows.
    const std::vector<std::string>& names() const { return m_names; }
    /// Index into names(). Copies and sets of memory are of the group "copy", whatever they are called.
    std::size_t of(ActivityKind kind, std::string_view kernel) const;

private:
    struct Rule {
        std::size_t group = 0;
        std::vector<std::string> parts;
    };
    std::vector<std::string> m_names;
    std::vector<Rule> m_rules;
    std::size_t m_copy = 0;
};

/// The part of a kernel's name that people know it by: "layernorm forward" of "a::layernorm_cu::forward(int, float*)".
std::string shortKernelName(std::string_view kernel);

} // namespace pipewright
