// SPDX-License-Identifier: GPL-3.0-or-later
#include "traces/analysis/kernelgroups.h"

#include "core/base/textfile.h"
#include "core/json/objectreader.h"
#include "core/presets/presets.h"

#include <algorithm>

namespace pipewright {

namespace {

std::string inSmallLetters(std::string_view text)
{
    std::string small(text);
    for (char& letter : small)
        if (letter >= 'A' && letter <= 'Z')
            letter = static_cast<char>(letter - 'A' + 'a');
    return small;
}

} // namespace

KernelGroups::KernelGroups(const std::string& file)
{
    const LocatedJson document = parseLocatedJson(readTextFile(file), file);
    Diagnostics faults;
    ObjectReader reader(document, document.value, "", faults);
    std::string title, otherwise = "other";
    reader.read("title", title);
    reader.read("otherwise", otherwise);
    const auto numberOf = [this](const std::string& group) {
        const auto known = std::find(m_names.begin(), m_names.end(), group);
        if (known != m_names.end())
            return static_cast<std::size_t>(known - m_names.begin());
        m_names.push_back(group);
        return m_names.size() - 1;
    };
    if (const nlohmann::json* rules = reader.array("rules", Presence::Required))
        for (std::size_t i = 0; i < rules->size(); ++i) {
            ObjectReader entry(document, (*rules)[i], reader.pointerTo("rules") + "/" + std::to_string(i), faults);
            std::string group;
            entry.read("group", group, Presence::Required);
            Rule& rule = m_rules.emplace_back();
            rule.group = numberOf(group);
            if (const nlohmann::json* parts = entry.array("contains", Presence::Required))
                for (const nlohmann::json& part : *parts) {
                    if (!part.is_string() || part.get<std::string>().empty())
                        entry.fault("contains", "not a list of parts of names", "\"gemm\"");
                    else
                        rule.parts.push_back(inSmallLetters(part.get<std::string>()));
                }
            entry.finish();
        }
    reader.finish();
    if (!faults.empty())
        throw Error(std::move(faults));
    m_copy = numberOf("copy");
    if (std::find(m_names.begin(), m_names.end(), otherwise) != m_names.end())
        throw Error(file, "\"" + otherwise + "\" is for what no rule knows, and a rule has it", "name it otherwise");
    m_names.push_back(otherwise);
}

const KernelGroups& KernelGroups::standard()
{
    static const KernelGroups only(findResourceDirectory() + "/kernelgroups.json");
    return only;
}

std::size_t KernelGroups::of(ActivityKind kind, std::string_view kernel) const
{
    if (kind != ActivityKind::Kernel)
        return m_copy;
    const std::string name = inSmallLetters(kernel);
    for (const Rule& rule : m_rules)
        for (const std::string& part : rule.parts)
            if (name.find(part) != name.npos)
                return rule.group;
    return m_names.size() - 1;
}

std::string shortKernelName(std::string_view kernel)
{
    constexpr std::string_view file = "_cu::"; // the place of a kernel without a name of its own: kernelname.h
    const std::string_view last = withoutScope(kernel);
    std::string_view name = last.substr(0, last.find_first_of("<("));
    if (name.empty())
        name = last;
    const auto before = kernel.substr(0, static_cast<std::size_t>(last.data() - kernel.data()));
    if (!before.ends_with(file))
        return std::string(name);
    const std::string_view path = before.substr(0, before.size() - file.size());
    const std::size_t scope = path.rfind("::");
    return std::string(path.substr(scope == path.npos ? 0 : scope + 2)) + " " + std::string(name);
}

} // namespace pipewright
