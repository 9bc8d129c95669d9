// SPDX-License-Identifier: GPL-3.0-or-later
// Classifies kernels by name: product, attention, norm, communication and so on; and the streams that carry
// communication regardless of kernel names. The rules are a table in the resource folder (kernelgroups.json); the
// user's own rules come first.
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
    /// The rules of the first file come first. Kernels without a rule get the group that the last file states.
    explicit KernelGroups(const std::vector<std::string>& files);
    /// The user's own rules, in pipewright/kernelgroups.json of the settings folder ($XDG_CONFIG_HOME, else ~/.config),
    /// then those of the resource folder. Read once.
    static const KernelGroups& standard();

    /// Groups in the order of the table; the last one is for kernels without a rule.
    const std::vector<std::string>& names() const { return m_names; }
    /// Index into names(). Copies and sets of memory are of the group "copy", whatever they are called.
    std::size_t of(ActivityKind kind, std::string_view kernel) const;
    const std::string& nameOf(ActivityKind kind, std::string_view kernel) const { return m_names[of(kind, kernel)]; }

    bool isCommunication(std::string_view kernel) const;
    bool isCommunicationStream(std::string_view stream) const; ///< by the name of its lane: "stream 27"

private:
    struct Rule {
        std::size_t group = 0;
        std::vector<std::string> whole, parts; ///< full names, and substrings
    };
    std::size_t numberOf(const std::string& group);
    void read(const std::string& file, std::string& otherwise);

    std::vector<std::string> m_names;
    std::vector<Rule> m_rules;
    std::vector<std::string> m_communicationStreams;
    std::size_t m_copy = 0, m_communication = 0;
};

/// The recognisable part of a kernel's name: "layernorm forward" of "a::layernorm_cu::forward(int, float*)".
std::string shortKernelName(std::string_view kernel);

} // namespace pipewright
