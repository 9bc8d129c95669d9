// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/plan/planexport.h"

#include "core/base/textfile.h"

#include <algorithm>
#include <filesystem>
#include <iterator>

namespace pipewright {

namespace {

constexpr std::string_view configurations[] = {"megatron-args", "torchtitan", "deepspeed", "automodel"};
constexpr std::string_view withSchedule[] = {"torchtitan", "automodel"}; ///< they name a file of pytorch-csv

bool isOneOf(const auto& names, std::string_view name)
{
    return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

} // namespace

std::vector<const ExportFormat*> planFormats()
{
    std::vector<const ExportFormat*> formats;
    for (const std::string_view name : configurations)
        formats.push_back(&exportFormat(name));
    for (const ExportFormat& format : exportFormats())
        if (format.text != nullptr && !isOneOf(configurations, format.name))
            formats.push_back(&format);
    return formats;
}

Diagnostics exportPlan(const Design& design, std::string_view format, const std::string& path)
{
    ExportOptions options;
    const std::filesystem::path schedule = std::filesystem::path(path).replace_extension(".csv");
    options.csv = schedule.filename().string();
    ExportedText text = exportFormat(format).write(design, options);
    if (isOneOf(withSchedule, format)) {
        const ExportedText csv = exportFormat("pytorch-csv").write(design, options);
        writeFileAtomically(schedule.string(), csv.text, true);
        text.diagnostics.push_back({Severity::Note, schedule.string(), "is the schedule that it names", {}});
    }
    writeFileAtomically(path, text.text, true);
    return text.diagnostics;
}

} // namespace pipewright
