// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/torch/moduleprogram.h"

#include "core/base/diagnostic.h"
#include "core/base/textfile.h"
#include "core/json/jsontext.h"
#include "executor/torch/python.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace pipewright {

bool ModuleProgram::run(const std::function<void(const nlohmann::json& report)>& take) const
{
    constexpr const char* otherVersion = "the pipewright package in this Python is of another version than the program";
    const RunFolder folder;
    writeFileAtomically(folder.file("job.json"), job.dump(), false);
    RankProcesses process({pythonProcess(python, name, {folder.file("job.json"), "--record", "fd:3"})});
    bool done = false;
    while (process.anyRuns()) {
        for (const ProcessEvent& event : process.wait()) {
            if (event.ended && !done)
                throw Error(where, "the process " + endText(event.status), "what it printed last may say why");
            if (event.ended)
                continue;
            const nlohmann::json report = tryJsonFromText(event.line);
            if (!report.is_object())
                throw Error(where, "this is no report: " + inQuotes(event.line), otherVersion);
            try {
                if (report.contains("failed"))
                    throw Error(report.value("where", where), report.at("failed").get<std::string>(),
                                report.value("hint", ""));
                take(report);
                done = done || report.value("done", false);
            } catch (const nlohmann::json::exception& error) {
                throw Error(where, fmt::format("{}: {}", error.what(), inQuotes(event.line)), otherVersion);
            }
        }
        if (cancel != nullptr && cancel->load())
            return false;
    }
    return true;
}

} // namespace pipewright
