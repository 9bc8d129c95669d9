// SPDX-License-Identifier: GPL-3.0-or-later
// Which kind of work a kernel is, by its name: product, attention, norm, communication and so on; and which streams
// carry communication whatever their kernels are called. The rules are a table in the resource folder
// (kernelgroups.json); a person's own come first.
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
    /// The rules of the first file come first. What no rule knows is called as the last one says.
    explicit KernelGroups(const std::vector<std::string>& files);
    /// A person's own, in pipewright/kernelgroups.json of the folder for settings ($XDG_CONFIG_HOME, else ~/.config),
    /// then those of the resource folder. Read once.
    static const KernelGroups& standard();

    /// Groups in the order of the table, the last one for all that no rule knows.
    const std::vector<std::string>& names() const { return m_names; }
    /// Index into names(). Copies and sets of memory are of the group "copy", whatever they are called.
    std::size_t of(ActivityKind kind, std::string_view kernel) const;
    const std::string& nameOf(ActivityKind kind, std::string_view kernel) const { return m_names[of(kind, kernel)]; }

    bool isCommunication(std::string_view kernel) const;
    bool isCommunicationStream(std::string_view stream) const; ///< by the name of its lane: "stream 27"

private:
    struct Rule {
        std::size_t group = 0;
        std::vector<std::string> whole, parts; ///< names, and what may stand anywhere in one
    };
    std::size_t numberOf(const std::string& group);
    void read(const std::string& file, std::string& otherwise);

    std::vector<std::string> m_names;
    std::vector<Rule> m_rules;
    std::vector<std::string> m_communicationStreams;
    std::size_t m_copy = 0, m_communication = 0;
};

/// The part of a kernel's name that people know it by: "layernorm forward" of "a::layernorm_cu::forward(int, float*)".
std::string shortKernelName(std::string_view kernel);

} // namespace pipewright
