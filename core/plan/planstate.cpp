// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/plan/planstate.h"

#include "core/base/diagnostic.h"
#include "core/base/formattedtext.h"
#include "core/json/jsontext.h"
#include "core/presets/clusterjson.h"
#include "core/presets/modeljson.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace pipewright {

namespace {

using Json = nlohmann::json;

constexpr std::string_view format = "pipewright plan state 1";

template<typename T>
std::string textOr(const std::optional<T>& value, const char* none)
{
    return value ? fmt::format("{}", *value) : none;
}

Json reasonsJson(const std::map<std::string, std::int64_t>& reasons)
{
    Json object = Json::object();
    for (const auto& [reason, count] : reasons)
        object[reason] = count;
    return object;
}

const Family* familyOf(const Json& name)
{
    const Family* const family = findFamily(name.get<std::string>());
    if (family == nullptr)
        throw Error("family", name.get<std::string>(), "");
    return family;
}

/// Throws Error or the library's exception for what is no state.
PlanState stateOf(const Json& object, std::size_t settings)
{
    PlanState state;
    const auto setting = [settings](const Json& index) {
        const auto found = index.get<std::uint32_t>();
        if (found >= settings)
            throw Error("setting", fmt::format("{}", found), "");
        return found;
    };
    for (const Json& each : object.at("predicted"))
        state.predicted.push_back({.setting = setting(each.at(0)),
                                   .family = familyOf(each.at(1)),
                                   .chunks = each.at(2).get<int>(),
                                   .step = each.at(3).get<Nanoseconds>(),
                                   .peak = each.at(4).get<Bytes>(),
                                   .tokensPerSecondPerDevice = each.at(5).get<double>(),
                                   .exceeds = each.at(6).get<bool>(),
                                   .whyNot = each.at(7).get<std::string>()});
    for (const Json& each : object.at("bounded")) {
        PlanState::Bounded& bounded = state.bounded.emplace_back();
        bounded.family = familyOf(each.at("family"));
        bounded.chunks = each.at("chunks").get<int>();
        bounded.pipeline = each.at("pipeline").get<int>();
        bounded.microbatches = each.at("microbatches").get<int>();
        bounded.exceeding = each.at("exceeding").get<std::int64_t>();
        bounded.decided = each.at("decided").get<std::int64_t>();
        for (const auto& [reason, count] : each.at("refused").items())
            bounded.refused[reason] = count.get<std::int64_t>();
        for (const Json& open : each.at("open"))
            bounded.open.push_back({{open.at(1).get<Nanoseconds>(), open.at(2).get<Bytes>()},
                                    setting(open.at(0)),
                                    bounded.chunks,
                                    bounded.family});
    }
    return state;
}

} // namespace

std::map<std::string, std::string> questionOf(const PlanRequest& request)
{
    return {{"model", jsonText(shapeToJson(request.shape))},
            {"cluster", jsonText(clusterToJson(*request.cluster(1, 1)))},
            {"devices", fmt::format("{}", request.devices)},
            {"batch", fmt::format("{}", request.batch)},
            {"plans in the list", fmt::format("{}", request.top)},
            {"frontier", request.frontier ? "looked for" : "left out"},
            {"memory limit", textOr(request.memoryLimit, "the devices' memory")},
            {"families", request.families.empty() ? "all" : joined(request.families, ",")},
            {"tensor", textOr(request.tensor, "free")},
            {"context", textOr(request.context, "free")},
            {"expert", textOr(request.expert, "free")},
            {"folded experts", textOr(request.foldedExperts, "free")},
            {"pipeline", textOr(request.pipeline, "free")},
            {"data", textOr(request.data, "free")},
            {"chunks", textOr(request.chunks, "free")},
            {"microbatch size", textOr(request.microbatchSize, "free")},
            {"zero", textOr(request.zero, "free")},
            {"reshard", textOr(request.reshard, "free")},
            {"recompute", request.recompute ? nameOf(*request.recompute) : "free"}};
}

std::string stateText(const PlanState& state)
{
    Json predicted = Json::array(), bounded = Json::array();
    for (const PlanState::Predicted& each : state.predicted)
        predicted.push_back(Json::array({each.setting, each.family->name, each.chunks, each.step, each.peak,
                                         each.tokensPerSecondPerDevice, each.exceeds, each.whyNot}));
    for (const PlanState::Bounded& each : state.bounded) {
        Json open = Json::array();
        for (const PlanCandidate& plan : each.open)
            open.push_back(Json::array({plan.setting, plan.bounds.step, plan.bounds.peak}));
        bounded.push_back({{"family", each.family->name},
                           {"chunks", each.chunks},
                           {"pipeline", each.pipeline},
                           {"microbatches", each.microbatches},
                           {"exceeding", each.exceeding},
                           {"decided", each.decided},
                           {"refused", reasonsJson(each.refused)},
                           {"open", std::move(open)}});
    }
    return jsonText(Json{{"format", format},
                         {"program", state.program},
                         {"question", state.question},
                         {"predicted", std::move(predicted)},
                         {"bounded", std::move(bounded)}})
           + "\n";
}

PlanState readState(std::string_view text, const std::string& where, const std::string& program,
                    const PlanRequest& request)
{
    const std::string anew = "begin anew in another folder, without --resume";
    const Error noState(where, "is no state of an interrupted plan", anew);
    const Json object = tryJsonFromText(text);
    try {
        if (!object.is_object() || object.at("format") != format)
            throw noState;
        if (const auto wrote = object.at("program").get<std::string>(); wrote != program)
            throw Error(where,
                        fmt::format("was written by {}, and this is {}, which may predict otherwise", wrote, program),
                        anew);
        const auto question = object.at("question").get<std::map<std::string, std::string>>();
        const std::map<std::string, std::string> asked = questionOf(request);
        for (const auto& [name, value] : asked) {
            const auto was = question.find(name);
            if (was == question.end() || was->second != value) {
                constexpr std::size_t readable = 40;
                const bool isShort = was != question.end() && std::max(was->second.size(), value.size()) <= readable;
                throw Error(
                    where,
                    isShort ? fmt::format("belongs to another question: {} was {}, and is {}", name, was->second, value)
                            : fmt::format("belongs to another question: another {}", name),
                    "ask the same with --resume, or " + anew);
            }
        }
        PlanState state = stateOf(object, settingsOf(request, request.shape).possible.size());
        state.program = program;
        state.question = question;
        return state;
    } catch (const Json::exception&) {
        throw noState;
    } catch (const Error& error) {
        if (error.diagnostics().front().where == where)
            throw;
        throw noState;
    }
}

} // namespace pipewright
