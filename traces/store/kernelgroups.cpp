// SPDX-License-Identifier: GPL-3.0-or-later
// The first rule that has the kernel's name, or a part of it, wins. O(rules) per name.
#include "traces/store/kernelgroups.h"

#include "core/base/textfile.h"
#include "core/json/locatedjson.h"
#include "core/json/objectreader.h"
#include "core/presets/presets.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

namespace pipewright {

namespace {

constexpr const char* communication = "communication";

std::string inSmallLetters(std::string_view text)
{
    std::string small(text);
    for (char& letter : small)
        if (letter >= 'A' && letter <= 'Z')
            letter = static_cast<char>(letter - 'A' + 'a');
    return small;
}

} // namespace

KernelGroups::KernelGroups(const std::string& file) : KernelGroups(std::vector<std::string>{file}) {}

KernelGroups::KernelGroups(const std::vector<std::string>& files)
{
    std::string otherwise = "other";
    for (const std::string& file : files)
        read(file, otherwise);
    m_copy = numberOf("copy");
    m_communication = numberOf(communication);
    if (std::find(m_names.begin(), m_names.end(), otherwise) != m_names.end())
        throw Error(files.back(), "\"" + otherwise + "\" is for what no rule knows, and a rule has it",
                    "name it otherwise");
    m_names.push_back(otherwise);
}

std::size_t KernelGroups::numberOf(const std::string& group)
{
    const auto known = std::find(m_names.begin(), m_names.end(), group);
    if (known != m_names.end())
        return known - m_names.begin();
    m_names.push_back(group);
    return m_names.size() - 1;
}

void KernelGroups::read(const std::string& file, std::string& otherwise)
{
    const LocatedJson document = parseLocatedJson(readTextFile(file), file);
    Diagnostics faults;
    ObjectReader reader(document, document.value, "", faults);
    std::string title;
    reader.read("title", title);
    reader.read("otherwise", otherwise);
    if (const nlohmann::ordered_json* rules = reader.array("rules", Presence::Required))
        for (std::size_t i = 0; i < rules->size(); ++i) {
            ObjectReader entry(document, (*rules)[i], reader.pointerTo("rules") + "/" + std::to_string(i), faults);
            std::string group;
            entry.read("group", group, Presence::Required);
            Rule& rule = m_rules.emplace_back();
            rule.group = numberOf(group);
            const auto texts = [&](const char* key, Presence presence, const char* what, const char* example,
                                   auto take) {
                const nlohmann::ordered_json* parts = entry.array(key, presence);
                if (parts != nullptr)
                    for (const nlohmann::ordered_json& part : *parts) {
                        if (!part.is_string() || part.get<std::string>().empty())
                            entry.fault(key, what, example);
                        else
                            take(part.get<std::string>());
                    }
            };
            std::size_t streams = 0;
            texts("streams", Presence::Optional, "not a list of streams", "\"stream 27\"",
                  [&](const std::string& stream) {
                      ++streams;
                      if (group == communication)
                          m_communicationStreams.push_back(stream);
                      else
                          entry.fault("streams", "only communication is known by its stream",
                                      "\"group\": \"communication\"");
                  });
            texts("is", Presence::Optional, "not a list of names", "\"aten::add\"",
                  [&](const std::string& name) { rule.whole.push_back(inSmallLetters(name)); });
            texts("contains", streams > 0 || !rule.whole.empty() ? Presence::Optional : Presence::Required,
                  "not a list of parts of names", "\"gemm\"",
                  [&](const std::string& part) { rule.parts.push_back(inSmallLetters(part)); });
            entry.finish();
        }
    reader.finish();
    if (!faults.empty())
        throw Error(std::move(faults));
}

const KernelGroups& KernelGroups::standard()
{
    static const KernelGroups only([] {
        std::vector<std::string> files;
        const char* settings = std::getenv("XDG_CONFIG_HOME");
        const char* home = std::getenv("HOME");
        std::filesystem::path folder;
        if (settings != nullptr && *settings != 0)
            folder = settings;
        else if (home != nullptr && *home != 0)
            folder = std::filesystem::path(home) / ".config";
        std::error_code error;
        if (const auto own = folder / "pipewright" / "kernelgroups.json";
            folder.is_absolute() && std::filesystem::is_regular_file(own, error))
            files.push_back(own.string());
        files.push_back(findResourceDirectory() + "/kernelgroups.json");
        return files;
    }());
    return only;
}

std::size_t KernelGroups::of(ActivityKind kind, std::string_view kernel) const
{
    if (kind == ActivityKind::Memcpy || kind == ActivityKind::Memset)
        return m_copy;
    const std::string name = inSmallLetters(kernel);
    for (const Rule& rule : m_rules)
        if (std::find(rule.whole.begin(), rule.whole.end(), name) != rule.whole.end()
            || std::any_of(rule.parts.begin(), rule.parts.end(),
                           [&](const std::string& part) { return name.find(part) != name.npos; }))
            return rule.group;
    return m_names.size() - 1;
}

bool KernelGroups::isCommunication(std::string_view kernel) const
{
    return of(ActivityKind::Kernel, kernel) == m_communication;
}

bool KernelGroups::isCommunicationStream(std::string_view stream) const
{
    return std::find(m_communicationStreams.begin(), m_communicationStreams.end(), stream)
           != m_communicationStreams.end();
}

std::string shortKernelName(std::string_view kernel)
{
    constexpr std::string_view file = "_cu::"; // the place of a kernel without a name of its own: kernelname.h
    const std::string_view last = withoutScope(kernel);
    std::string_view name = last.substr(0, last.find_first_of("<("));
    if (name.empty())
        name = last;
    const auto before = kernel.substr(0, last.data() - kernel.data());
    if (!before.ends_with(file))
        return std::string(name);
    const std::string_view path = before.substr(0, before.size() - file.size());
    const std::size_t scope = path.rfind("::");
    return std::string(path.substr(scope == path.npos ? 0 : scope + 2)) + " " + std::string(name);
}

} // namespace pipewright
