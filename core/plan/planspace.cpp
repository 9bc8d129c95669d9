// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/plan/planspace.h"

#include "core/base/diagnostic.h"
#include "core/model/parallelism.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace pipewright {

namespace {

std::vector<int> divisorsOf(int number)
{
    std::vector<int> divisors;
    for (int d = 1; d <= number / d; ++d)
        if (number % d == 0) {
            divisors.push_back(d);
            if (d != number / d)
                divisors.push_back(number / d);
        }
    std::sort(divisors.begin(), divisors.end());
    return divisors;
}

/// A pinned dimension alone, whether or not it divides: then the reason is told.
std::vector<int> choices(const std::optional<int>& pinned, std::vector<int> all)
{
    return pinned ? std::vector<int>{*pinned} : std::move(all);
}

std::vector<Zero> zerosOf(const PlanSpace& space, int copies)
{
    std::vector<Zero> zeros;
    const auto add = [&](const Zero& zero) {
        if (space.zero.value_or(zero.level) == zero.level
            && space.reshard.value_or(zero.reshard.every) == zero.reshard.every)
            zeros.push_back(zero);
    };
    add({});
    if (copies == 1)
        return zeros;
    add({.level = 1});
    add({.level = 2, .reduce = Zero::Reduce::Each}); // summed once, its peak is that of level 1
    add({.level = 3});
    add({.level = 3, .reshard = {true, {}}});
    return zeros;
}

/// Degrees of expert parallelism with, and without, folding the experts over so many members of a stage's device.
std::vector<std::pair<int, bool>> expertDegrees(const PlanSpace& space, const std::vector<int>& experts,
                                                const ModelShape& shape, int members)
{
    std::vector<std::pair<int, bool>> degrees;
    for (const bool folded : {false, true})
        if (space.foldedExperts ? *space.foldedExperts == folded : !folded || (shape.experts > 0 && members > 1))
            for (const int expert : experts)
                degrees.emplace_back(expert, folded);
    return degrees;
}

/// The degrees that the model does not allow, in words; empty: it does.
std::string whyNot(const ModelShape& shape, const Parallelism& parallel)
{
    ModelShape with = shape;
    with.parallel = parallel;
    const Diagnostics faults = checkParallelism(with);
    const auto error = std::find_if(faults.begin(), faults.end(),
                                    [](const Diagnostic& each) { return each.severity == Severity::Error; });
    return error == faults.end() ? std::string()
                                 : error->where.substr(error->where.rfind('.') + 1) + ": " + error->what;
}

} // namespace

Parallelism PlanSetting::parallel() const
{
    Parallelism degrees;
    degrees.tensor = tensor;
    degrees.sequence = tensor > 1;
    degrees.context = context;
    degrees.expert = expert;
    degrees.data = data;
    degrees.foldedExperts = foldedExperts;
    return degrees;
}

PlanSettings settingsOf(const PlanSpace& space, const ModelShape& shape)
{
    PlanSettings result;
    constexpr std::array recomputes{Recompute::None, Recompute::Selective, Recompute::Full};
    const std::int64_t pinned = std::int64_t{space.tensor.value_or(1)} * space.context.value_or(1)
                                * space.pipeline.value_or(1) * space.data.value_or(1);
    if (space.devices % pinned != 0) {
        ++result.byShape[fmt::format("degrees: those that are fixed, {} together, do not divide {} devices", pinned,
                                     space.devices)];
        return result;
    }
    const std::vector<int> divisors = divisorsOf(space.devices);
    const std::vector<int> experts =
        choices(space.expert, shape.experts > 0 ? divisorsOf(shape.experts) : std::vector<int>{1});
    for (const int tensor : choices(space.tensor, divisors))
        for (const int context : choices(space.context, divisors))
            for (const int pipeline : choices(space.pipeline, divisors)) {
                const std::int64_t others = std::int64_t{tensor} * context * pipeline;
                if (others > space.devices || space.devices % others != 0)
                    continue;
                const auto data = static_cast<int>(space.devices / others);
                if (space.data.value_or(data) != data)
                    continue;
                for (const auto& [expert, folded] : expertDegrees(space, experts, shape, tensor * context)) {
                    PlanSetting setting{.tensor = tensor,
                                        .context = context,
                                        .expert = expert,
                                        .pipeline = pipeline,
                                        .data = data,
                                        .zero = {},
                                        .recompute = {},
                                        .foldedExperts = folded};
                    if (std::string why = whyNot(shape, setting.parallel()); !why.empty()) {
                        ++result.byShape[why];
                        continue;
                    }
                    if (pipeline > shape.layers + 2) {
                        ++result.byShape[fmt::format("pipeline: {} devices for {} layers", pipeline, shape.layers)];
                        continue;
                    }
                    if (space.batch % data != 0) {
                        ++result.byBatch[fmt::format("data: {} sequences over {} copies", space.batch, data)];
                        continue;
                    }
                    const int ofCopy = space.batch / data;
                    for (const int size : choices(space.microbatchSize, divisorsOf(ofCopy))) {
                        if (size < 1 || ofCopy % size != 0) {
                            ++result
                                  .byBatch[fmt::format("microbatch size: {} sequences of a copy by {}", ofCopy, size)];
                            continue;
                        }
                        setting.microbatchSize = size;
                        setting.microbatches = ofCopy / size;
                        for (const Zero& zero : zerosOf(space, data * context)) {
                            setting.zero = zero;
                            for (const Recompute& recompute : recomputes)
                                if (space.recompute.value_or(recompute) == recompute) {
                                    setting.recompute = recompute;
                                    result.possible.push_back(setting);
                                }
                        }
                    }
                }
            }
    return result;
}

std::vector<PlanOrder> ordersOf(const PlanSpace& space, const PlanSetting& setting, int layers)
{
    std::vector<PlanOrder> orders;
    const int gatheredAhead = 1 + setting.zero.prefetch;
    const auto add = [&](const Family& family) {
        if (!family.chunksSelectable) {
            if (space.chunks.value_or(family.defaultChunks) == family.defaultChunks
                && (!setting.zero.reshard.every || family.defaultChunks > gatheredAhead))
                orders.push_back({&family, family.defaultChunks});
            return;
        }
        if (setting.pipeline == 1 && family.combines && space.chunks.value_or(1) == 1)
            orders.push_back({&family, 1});
        if (setting.pipeline > 1)
            for (int chunks = space.chunks.value_or(2); chunks <= space.chunks.value_or(layers / setting.pipeline);
                 ++chunks)
                if (!setting.zero.reshard.every || chunks > gatheredAhead)
                    orders.push_back({&family, chunks});
    };
    for (const std::string& name : space.families) {
        const Family* const family = findFamily(name);
        if (family == nullptr)
            throw Error("--families", fmt::format("\"{}\" is no family", name), "`new --help` lists them");
        add(*family);
    }
    if (!space.families.empty())
        return orders;
    for (const Family& family : families()) {
        const bool isOne = family.name == "1f1b";                 // one device runs its blocks one after the other …
        const bool hides = family.combines && setting.expert > 1; // … or hides exchanges, where there are some
        if (family.combines         ? hides
            : setting.pipeline == 1 ? isOne
                                    : !family.updates && !family.dataParallel && family.search == FamilySearch::None)
            add(family);
    }
    return orders;
}

void pin(PlanSpace& space, std::string_view text, const std::string& where)
{
    const std::size_t at = text.find('=');
    const std::string key(text.substr(0, at));
    const std::string value(at == std::string_view::npos ? std::string_view() : text.substr(at + 1));
    constexpr std::string_view hint =
        "KEY=VALUE with tensor, context, expert, pipeline, data, chunks, microbatch_size or "
        "zero and a number, folded_experts=yes or no, reshard=always or never, recompute=none, selective or full";
    if (key == "recompute") {
        space.recompute = recomputeOfName(value, where);
        return;
    }
    if (key == "folded_experts") {
        if (value != "yes" && value != "no")
            throw Error(where, fmt::format("\"{}\" says nothing of folding experts", value), std::string(hint));
        space.foldedExperts = value == "yes";
        return;
    }
    if (key == "reshard") {
        if (value != "always" && value != "never")
            throw Error(where, fmt::format("\"{}\" says nothing of resharding", value), std::string(hint));
        space.reshard = value == "always";
        return;
    }
    const std::map<std::string, std::optional<int> PlanSpace::*, std::less<>> numbers{
        {"tensor", &PlanSpace::tensor},
        {"context", &PlanSpace::context},
        {"expert", &PlanSpace::expert},
        {"pipeline", &PlanSpace::pipeline},
        {"data", &PlanSpace::data},
        {"chunks", &PlanSpace::chunks},
        {"microbatch_size", &PlanSpace::microbatchSize},
        {"zero", &PlanSpace::zero}};
    const auto field = numbers.find(key);
    int number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (field == numbers.end() || value.empty() || error != std::errc() || end != value.data() + value.size()
        || number < (key == "zero" ? 0 : 1))
        throw Error(where, fmt::format("\"{}\" fixes no dimension", text), std::string(hint));
    space.*(field->second) = number;
}

} // namespace pipewright
