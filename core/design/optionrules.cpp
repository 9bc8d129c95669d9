// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/design/optionrules.h"

#include "core/schedule/weightplan.h"

#include <fmt/format.h>

#include <algorithm>

namespace pipewright {

namespace {

/// What decides whether options are used.
struct Situation {
    const DesignRequest& request;
    const Family& family;
    const Schedule* schedule = nullptr; ///< once it is made

    bool follows(WeightRule rule) const
    {
        return schedule == nullptr || (hasUpdates(*schedule) && schedule->weightPolicy.rule == rule);
    }
};

struct Rule {
    std::string_view option;
    bool (*used)(const Situation&) = [](const Situation&) { return true; };
    std::string_view unless{}; ///< why it changes nothing, after "changes nothing: "
    std::string_view hint{};
};

bool byFormula(const Situation& s)
{
    return s.request.model || s.request.device || s.request.cluster;
}

/// Whether a formula gives the times of passes: all of them or none, see designbuilder.cpp.
bool passesByFormula(const Situation& s)
{
    return byFormula(s) && !s.request.forward;
}

bool exchanges(const Situation& s)
{
    return s.request.parallel
           && (s.request.parallel->members() > 1 || s.request.parallel->expert > 1 || s.request.parallel->data > 1);
}

// Options of the first part always change the design, or are refused by their own checks where they cannot
// (families.cpp, designbuilder.cpp, workload's shapes).
constexpr Rule rules[] = {
    {"--devices"},
    {"--microbatches"},
    {"--replicas"},
    {"--zero"},
    {"--shard-optimizer"},
    {"--chunks"},
    {"--pieces"},
    {"--forward"},
    {"--input-grad"},
    {"--weight-grad"},
    {"--transfer"},
    {"--communication"},
    {"--saved"},
    {"--saved-for-weight-grad"},
    {"--model"},
    {"--device"},
    {"--cluster"},
    {"--sequence"},
    {"--microbatch-size"},
    {"--layers-per-stage"},
    {"--tensor-parallel"},
    {"--context-parallel"},
    {"--expert-parallel"},
    {"--data-parallel"},
    {"--nodes"},
    {"--devices-per-node"},
    {"--cards-per-node"},
    {"--nodes-per-switch"},
    {"--oversubscription"},
    {"--recompute"},
    {"--offload"},
    {"--host-link"},
    {"--name"},

    {"--reshard", [](const Situation& s) { return s.request.zero.sharesParameters(); }, "no parameters are shared out",
     "give --zero 3 too"},
    {"--prefetch", [](const Situation& s) { return s.request.zero.sharesParameters(); }, "no parameters are shared out",
     "give --zero 3 too"},
    {"--reduce", [](const Situation& s) { return s.request.zero.sharesGradients(); }, "no gradients are shared out",
     "give --zero 2 or 3 too"},
    {"--group", [](const Situation& s) { return s.family.interleaves; }, "its microbatches are in no groups",
     "leave it out, or use interleaved-1f1b"},
    {"--memory-limit", [](const Situation& s) { return s.family.search != FamilySearch::None; },
     "its order is fixed, whatever the memory",
     "leave it out, use zb-auto, zb-v or v-auto, or `search --memory-limit` on the design"},
    {"--per-chunk", [](const Situation& s) { return s.schedule == nullptr || s.schedule->chunks() > 1; },
     "it has one chunk per device", "leave it out"},
    {"--per-chunk", [](const Situation& s) { return !passesByFormula(s); }, "a formula gives the times",
     "leave it out, or give --forward, --input-grad and --weight-grad"},
    {"--efficiency", passesByFormula, "the times of passes are given",
     "leave it out, or --forward, --input-grad and --weight-grad"},
    {"--half-rate-width", passesByFormula, "the times of passes are given",
     "leave it out, or --forward, --input-grad and --weight-grad"},
    {"--sequence-parallel", [](const Situation& s) { return s.request.parallel && s.request.parallel->tensor > 1; },
     "a stage has no tensor-parallel devices that could split the tokens", "give --tensor-parallel N too"},
    {"--overlap-exchanges", exchanges, "the devices of a stage exchange nothing",
     "give --tensor-parallel, --context-parallel, --expert-parallel or --data-parallel too"},
    {"--overlap-exchanges", passesByFormula, "the times of passes are given", "leave it out"},
    {"--folded-experts", [](const Situation& s) { return s.request.parallel && s.request.parallel->members() > 1; },
     "a stage has no tensor- or context-parallel devices to fold experts over",
     "give --tensor-parallel N or --context-parallel N too"},
    {"--expert-spread", [](const Situation& s) { return s.request.parallel && s.request.parallel->expert > 1; },
     "no copies share out experts", "give --expert-parallel N too"},
    {"--expert-spread", passesByFormula, "the times of passes are given", "leave it out"},
    {"--node-dispatch", [](const Situation& s) { return s.request.parallel && s.request.parallel->expert > 1; },
     "no copies share out experts", "give --expert-parallel N too"},
    {"--node-dispatch", passesByFormula, "the times of passes are given", "leave it out"},
    {"--layout", [](const Situation& s) { return s.family.dataParallel; }, "it has no workers to lay out",
     "leave it out, or use dp, cdp-v1 or cdp-v2"},
    {"--workers", [](const Situation& s) { return s.family.dataParallel; }, "it has no workers",
     "leave it out, or use dp, cdp-v1 or cdp-v2"},
    {"--accumulate", [](const Situation& s) { return s.family.accumulates; }, "it does not choose when to update",
     "leave it out, or use async-1f1b, pipedream-2bw, pipeoptim, spectrain or xpipe"},
    {"--optimizer", [](const Situation& s) { return s.family.updates; }, "it updates once, at the end of a step",
     "leave it out, or use a family that updates amid the step"},

    {"--overlap-factor", [](const Situation& s) { return s.schedule == nullptr || !s.schedule->overlaps.empty(); },
     "no two of its blocks overlap", "leave it out, or use dualpipe or dualpipe-v"},
    {"--vertical-sync", [](const Situation& s) { return s.follows(WeightRule::PipeDream); },
     "it belongs to the weights of pipedream", "leave it out, or use pipedream"},
    {"--prediction-steps", [](const Situation& s) { return s.follows(WeightRule::PipeOptim); },
     "it belongs to the weights of pipeoptim", "leave it out, or use pipeoptim"},
    {"--rounding", [](const Situation& s) { return s.follows(WeightRule::XPipe); },
     "it belongs to the weights of xpipe", "leave it out, or use xpipe"},
    {"--spectrain", [](const Situation& s) { return s.follows(WeightRule::SpecTrain); },
     "it belongs to the weights of spectrain", "leave it out, or use spectrain"},
};

void refuse(const Situation& situation)
{
    Diagnostics found;
    for (const std::string& option : situation.request.given) {
        bool known = false, refused = false;
        for (const Rule& rule : rules) {
            known = known || rule.option == option;
            if (refused || rule.option != option || rule.used(situation))
                continue;
            refused = true;
            found.push_back({Severity::Error, option,
                             fmt::format("changes nothing of {}: {}", situation.family.title, rule.unless),
                             std::string(rule.hint)});
        }
        if (!known)
            found.push_back({Severity::Error, option, "is not known to change a design", "leave it out"});
    }
    if (!found.empty())
        throw Error(std::move(found));
}

} // namespace

std::vector<std::string_view> optionsWithRules()
{
    std::vector<std::string_view> options;
    for (const Rule& rule : rules)
        if (std::find(options.begin(), options.end(), rule.option) == options.end())
            options.push_back(rule.option);
    return options;
}

void refuseUnused(const DesignRequest& request)
{
    if (const Family* family = findFamily(request.family)) // makeSchedule() reports an unknown one
        refuse({request, *family});
}

void refuseUnused(const DesignRequest& request, const Schedule& schedule)
{
    if (const Family* family = findFamily(request.family))
        refuse({request, *family, &schedule});
}

Error doesNothing(std::string_view option, const Family& family)
{
    for (const Rule& rule : rules)
        if (rule.option == option)
            return Error(std::string(option), fmt::format("changes nothing of {}: {}", family.title, rule.unless),
                         std::string(rule.hint));
    return Error(std::string(option), "is not known to change a design", "leave it out");
}

} // namespace pipewright
