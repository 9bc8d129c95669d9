// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/torch/modulelook.h"

#include "core/base/textfile.h"
#include "core/json/jsontext.h"
#include "core/json/jsonvalue.h"
#include "executor/torch/python.h"
#include "executor/torch/rankprocesses.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace pipewright {

namespace {

using Json = nlohmann::json;

constexpr const char* otherVersion = "the pipewright package in this Python is of another version than the program";

/// Returns whether the process has said everything.
bool take(const std::string& line, ModuleLook& look)
{
    const Json report = tryJsonFromText(line);
    if (!report.is_object())
        throw Error("check", "this is no report: " + inQuotes(line), otherVersion);
    try {
        if (report.contains("failed"))
            throw Error(report.value("where", "check"), report.at("failed").get<std::string>(),
                        report.value("hint", ""));
        if (report.contains("found")) {
            look.facts = factsOfReport(report);
            look.layers = report.at("layers").get<std::vector<std::string>>();
            look.torch = report.at("torch");
        }
        return report.value("done", false);
    } catch (const Json::exception& error) {
        throw Error("check", fmt::format("{}: {}", error.what(), inQuotes(line)), otherVersion);
    }
}

} // namespace

ModuleLook lookAtModule(const ModuleLookOptions& options)
{
    requireModuleFile(options.module);
    const RunFolder folder;
    const JsonValue job{{"module", options.module}, {"device", options.device}, {"seed", options.seed}};
    writeFileAtomically(folder.file("job.json"), job.dump(), false);
    RankProcesses process(
        {pythonProcess(options.python, "pipewright.look", {folder.file("job.json"), "--record", "fd:3"})});
    ModuleLook look;
    bool done = false;
    while (process.anyRuns()) {
        for (const ProcessEvent& event : process.wait())
            if (!event.ended)
                done = take(event.line, look) || done;
            else if (!done)
                throw Error("check", "the process " + endText(event.status), "what it printed last may say why");
        if (options.cancel != nullptr && options.cancel->load()) {
            look.cancelled = true;
            break;
        }
    }
    return look;
}

} // namespace pipewright
