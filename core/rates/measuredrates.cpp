// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/rates/measuredrates.h"

#include "core/base/formattedtext.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <tuple>

namespace pipewright {

namespace {

using Json = nlohmann::ordered_json;

/// Shares and seconds have as many digits as a measurement is worth, and a measured time is found again within 1e-5.
double rounded(double value)
{
    return std::stod(fmt::format("{:.6g}", value));
}

} // namespace

double amountOf(const RatedShape& shape)
{
    const RateDimensions& d = shape.dims;
    switch (shape.operation) {
    case RatedOperation::Product: return 2 * d[0] * d[1] * d[2];
    case RatedOperation::GroupedProduct: return 2 * d[0] * d[1] * d[2] * d[3];
    case RatedOperation::AttentionForward:
    case RatedOperation::AttentionBackward: {
        const bool stored = shape.layout == "stored";
        const double keys = shape.layout == "causal" ? d[4] / 2 : d[4];
        const double products = shape.operation == RatedOperation::AttentionForward ? 1 : stored ? 2 : 2.5;
        return products * 2 * d[0] * d[4] * keys * (d[2] + d[3]);
    }
    case RatedOperation::Memory: return d[0];
    case RatedOperation::AllReduce:
    case RatedOperation::AllGather:
    case RatedOperation::ReduceScatter:
    case RatedOperation::AllToAll:
    case RatedOperation::Send: return d[1];
    }
    return 0;
}

OperationRates ratesOf(std::span<const MeasuredTime> times, const MeasuredOn& on)
{
    OperationRates rates;
    rates.title = on.title;
    rates.origin = on.origin;
    using Key = std::tuple<RatedOperation, std::string_view, std::string_view, std::string_view>;
    std::map<Key, std::map<RateDimensions, MeasuredRate>> tables;
    for (const auto& [shape, seconds] : times) {
        const double peak = countsFlops(shape.operation) ? on.flopsPeak : on.bytesPeak;
        tables[{shape.operation, shape.layout, shape.types, shape.link}].emplace(
            shape.dims, MeasuredRate{shape.dims, rounded(amountOf(shape) / seconds / peak), 0});
    }
    for (const auto& [key, shapes] : tables) {
        RateTable& table = rates.tables.emplace_back();
        table.operation = std::get<0>(key);
        table.layout = std::get<1>(key);
        table.types = std::get<2>(key);
        table.link = std::get<3>(key);
        table.peak = countsFlops(table.operation) ? on.flopsPeak : on.bytesPeak;
        table.source = on.source;
        table.when = on.when;
        for (int d = 0; d < static_cast<int>(dimensionsOf(table.operation).size()); ++d)
            table.used.push_back(d);
        for (const auto& [dims, rate] : shapes)
            table.shapes.push_back(rate);
    }
    return rates;
}

std::string ratesText(const OperationRates& rates)
{
    std::string text =
        fmt::format("{{\n\"title\": {},\n\"origin\": {},\n", Json(rates.title).dump(), Json(rates.origin).dump());
    Json checked = Json::array();
    for (const CheckedRuns& runs : rates.checked)
        checked.push_back({{"products", nameOf(runs.products)},
                           {"runs", runs.runs},
                           {"median", runs.median},
                           {"largest", runs.largest},
                           {"of", runs.of},
                           {"where", runs.where}});
    if (!checked.empty())
        text += fmt::format("\"checked\": {},\n", checked.dump());
    text += "\"tables\": [\n";
    for (std::size_t t = 0; t < rates.tables.size(); ++t) {
        const RateTable& table = rates.tables[t];
        const std::vector<std::string_view> names = dimensionsOf(table.operation);
        Json head{{"operation", nameOf(table.operation)}};
        if (!table.layout.empty())
            head["layout"] = table.layout;
        if (!table.types.empty())
            head["types"] = table.types;
        if (!table.link.empty())
            head["link"] = table.link;
        head.update({{"peak", table.peak}, {"source", table.source}, {"when", table.when}, {"dims", Json::array()}});
        for (const int d : table.used)
            head["dims"].push_back(names[static_cast<std::size_t>(d)]);
        std::string line = head.dump();
        line.pop_back(); // the shapes are in the same object
        text += line + ", \"shapes\": [\n";
        for (std::size_t s = 0; s < table.shapes.size(); ++s) {
            Json shape = Json::array();
            for (const int d : table.used)
                shape.push_back(table.shapes[s].dims[static_cast<std::size_t>(d)]);
            shape.push_back(table.shapes[s].share);
            if (table.shapes[s].latency > 0)
                shape.push_back(table.shapes[s].latency);
            text += shape.dump() + (s + 1 < table.shapes.size() ? ",\n" : "\n");
        }
        text += t + 1 < rates.tables.size() ? "]},\n" : "]}\n";
    }
    return text + "]\n}\n";
}

std::string textOf(const RatedShape& shape)
{
    std::string text{nameOf(shape.operation)};
    for (const std::string_view part : {shape.layout, shape.types, shape.link})
        if (!part.empty())
            text += fmt::format(" {}", part);
    std::vector<std::string> sizes;
    for (std::size_t d = 0; d < dimensionsOf(shape.operation).size(); ++d)
        sizes.push_back(fmt::format("{:.0f}", shape.dims[d]));
    return text + ", " + joined(sizes, " × ");
}

} // namespace pipewright
