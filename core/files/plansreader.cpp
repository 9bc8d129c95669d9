// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/files/plansreader.h"

#include "core/design/stageplans.h"
#include "core/files/buildingblockreader.h"
#include "core/json/locatedjson.h"
#include "core/json/objectreader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>

namespace pipewright {

namespace {

class PlansReader {
public:
    PlansReader(const LocatedJson& document, Design& design, Diagnostics& diagnostics)
        : m_document(document), m_design(design), m_diagnostics(diagnostics)
    {
        m_design.plans.resize(static_cast<std::size_t>(design.schedule.stages()));
        m_stated.resize(m_design.plans.size(), false);
    }

    void read(const nlohmann::ordered_json& value, std::string pointer)
    {
        m_pointer = std::move(pointer);
        const std::size_t before = m_diagnostics.size();
        ObjectReader reader(m_document, value, m_pointer, m_diagnostics);
        sharding::StatedPlan plan;
        std::vector<int> stages;
        if (const nlohmann::ordered_json* list = reader.array("stages", Presence::Required))
            stages = readIntegers(m_document, *list, reader.pointerTo("stages"), 0, std::numeric_limits<int>::max(),
                                  m_diagnostics);
        reader.readName("strategy", plan.strategy);
        if (const nlohmann::ordered_json* shares = reader.array("ratios"))
            for (const nlohmann::ordered_json& share : *shares) {
                if (!share.is_number())
                    reader.fault("ratios", "a share is no number", "write one number for each member: [0.6, 0.4]");
                plan.ratios.push_back(share.is_number() ? share.get<double>() : 0);
            }
        if (const nlohmann::ordered_json* lines = reader.array("program"))
            for (const nlohmann::ordered_json& line : *lines) {
                if (!line.is_string())
                    reader.fault("program", "an instruction is no text", "write the plan anew: pipewright shard");
                plan.program.push_back(line.is_string() ? line.get<std::string>() : std::string());
            }
        reader.finish();
        if (m_diagnostics.size() != before)
            return;
        if (stages.empty())
            fault("stages", "the plan is of no stage", "list the stages that it is of: [0, 1]");
        for (const int stage : stages)
            take(stage, plan);
    }

private:
    void take(int stage, const sharding::StatedPlan& plan)
    {
        const std::string remedy = "name a stage that a group of devices holds, or remove the plan";
        const auto at = static_cast<std::size_t>(stage);
        if (stage >= m_design.schedule.stages())
            return fault("stages", fmt::format("there is no stage {}", stage), remedy);
        if (m_stated[at])
            return fault("stages", fmt::format("stage {} has a plan already", stage), "leave it out here");
        m_stated[at] = true;
        const DeviceSpec* group = groupOfStage(m_design, stage);
        if (!group)
            return fault("stages", fmt::format("stage {} is held by a single device", stage), remedy);
        if (!m_design.workload || m_design.layersPerStage.size() != m_design.plans.size())
            return fault("stages", "the design has no model whose layers could be shared out", remedy);
        const std::vector<int>& layers = m_design.layersPerStage;
        if (std::accumulate(layers.begin(), layers.end(), std::int64_t{0})
            != static_cast<std::int64_t>(m_design.workload->layers.size()))
            return; // reported for layers_per_stage
        try {
            const int first = std::accumulate(layers.begin(), layers.begin() + stage, 0);
            checkPlan(plan, *m_design.workload, first, layers[at], *group->group);
        } catch (const Error& error) {
            for (const Diagnostic& wrong : error.diagnostics()) {
                std::string place = wrong.where; // the place "program.3" is the pointer program/3
                std::replace(place.begin(), place.end(), '.', '/');
                fault(place, fmt::format("stage {}: {}", stage, wrong.what), wrong.hint);
            }
        }
        m_design.plans[at] = plan;
    }

    void fault(const std::string& key, std::string what, std::string hint)
    {
        addBounded(m_diagnostics,
                   {Severity::Error, m_document.placeOf(m_pointer + "/" + key), std::move(what), std::move(hint)});
    }

    const LocatedJson& m_document;
    std::string m_pointer;
    Design& m_design;
    Diagnostics& m_diagnostics;
    std::vector<bool> m_stated;
};

} // namespace

void readPlans(const LocatedJson& document, const nlohmann::ordered_json& list, const std::string& pointer,
               Design& design, Diagnostics& diagnostics)
{
    PlansReader reader(document, design, diagnostics);
    for (std::size_t i = 0; i < list.size(); ++i)
        reader.read(list[i], fmt::format("{}/{}", pointer, i));
    if (std::all_of(design.plans.begin(), design.plans.end(),
                    [](const auto& plan) { return plan == sharding::StatedPlan{}; }))
        design.plans.clear();
}

} // namespace pipewright
