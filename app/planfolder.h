// SPDX-License-Identifier: GPL-3.0-or-later
// The folder of `plan -o`: a design for each plan, and while the list is not complete the state with which --resume
// goes on, plan-state.json.
#pragma once

#include "core/plan/planrefine.h"
#include "core/plan/planstate.h"

#include <memory>
#include <string>
#include <vector>

namespace pipewright::app {

class PlanFolder {
public:
    /// Before the search, so that nothing it found is lost to a folder that cannot be written, or must not be. Without
    /// `resume` the folder has to be empty or new, unless `force`. With it, it holds a state, whose question is the
    /// request's, or nothing yet, which is said. Throws Error.
    PlanFolder(std::string folder, bool force, bool resume, const PlanRequest& request);

    const std::shared_ptr<const PlanState>& resumed() const { return m_resumed; } ///< null: nothing
    /// Replaces the state. A folder that cannot be written any more is said once; the search goes on.
    void save(const PlanState& state);
    /// The files of the designs, which replace those of the interrupted search.
    std::vector<std::string> write(const PlanResult& result);
    /// Of the first plan, refined: its file.
    std::string write(const RefinedPlan& refined);

private:
    std::string fileOf(const std::string& name) const;

    std::string m_folder;
    bool m_overwrite, m_isSaving = true;
    std::shared_ptr<const PlanState> m_resumed;
};

} // namespace pipewright::app
