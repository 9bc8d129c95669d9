// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/planfolder.h"

#include "app/terminal.h"
#include "app/version.h"

#include "core/base/diagnostic.h"
#include "core/base/textfile.h"
#include "core/files/designfile.h"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

namespace pipewright::app {

namespace {

constexpr const char* stateFile = "plan-state.json";

} // namespace

PlanFolder::PlanFolder(std::string folder, bool force, bool resume, const PlanRequest& request)
    : m_folder(std::move(folder)), m_overwrite(force || resume)
{
    std::error_code error;
    std::filesystem::create_directories(m_folder, error);
    if (error)
        throw Error(m_folder, "cannot be made: " + error.message(), "name another folder with -o");
    const bool isEmpty = std::filesystem::is_empty(m_folder, error);
    const std::string state = fileOf(stateFile);
    if (resume && std::filesystem::exists(state, error))
        m_resumed = std::make_shared<const PlanState>(readState(readTextFile(state), state, versionText(), request));
    else if (resume && !isEmpty)
        throw Error(m_folder, "holds no plan that was interrupted",
                    "name the folder of one with -o, or leave --resume out");
    else if (resume)
        printError("note: {} holds nothing to resume; the plan begins anew\n", m_folder);
    else if (!force && !isEmpty)
        throw Error(m_folder, "is not empty, and designs in it would be replaced",
                    "name another folder, or add --force; --resume goes on with an interrupted plan");
}

std::string PlanFolder::fileOf(const std::string& name) const
{
    return (std::filesystem::path(m_folder) / name).string();
}

void PlanFolder::save(const PlanState& state)
{
    if (!m_isSaving)
        return;
    try {
        PlanState written = state;
        written.program = versionText();
        writeFileAtomically(fileOf(stateFile), stateText(written), true);
    } catch (const Error& error) {
        m_isSaving = false;
        printError("note: --resume will not find all of this plan: {}\n", error.what());
    }
}

std::vector<std::string> PlanFolder::write(const PlanResult& result)
{
    std::vector<std::string> files;
    for (std::size_t i = 0; i < result.plans.size(); ++i) {
        const TrainingPlan& plan = result.plans[i];
        files.push_back(fileOf(fmt::format("{:02}-{}-tensor{}-pipeline{}-data{}.json", i + 1, plan.family->name,
                                           plan.setting.tensor, plan.setting.pipeline, plan.setting.data)));
        writeDesign(plan.design, files.back(), m_overwrite);
    }
    if (result.complete && result.frontierComplete) {
        std::error_code error;
        std::filesystem::remove(fileOf(stateFile), error);
        if (error)
            throw Error(fileOf(stateFile), "cannot be removed: " + error.message(), "remove it: the plan is complete");
    }
    return files;
}

std::string PlanFolder::write(const RefinedPlan& refined)
{
    std::string file = fileOf("01-refined.json");
    writeDesign(refined.design, file, m_overwrite);
    return file;
}

} // namespace pipewright::app
