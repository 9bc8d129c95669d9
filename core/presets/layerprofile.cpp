// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/presets/layerprofile.h"

#include "core/base/formattedtext.h"
#include "core/base/units.h"
#include "core/json/jsontext.h"
#include "core/model/layertable.h"
#include "core/presets/modeljson.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace pipewright {

namespace {

std::string listed(const char* what, const std::vector<std::string>& columns)
{
    return columns.empty() ? std::string() : fmt::format("; {}: {}", what, joined(columns, ", "));
}

} // namespace

std::string LayerProfile::origin(const std::string& of) const
{
    double worst = 0;
    for (const ProfiledLayer& layer : layers)
        worst = std::max(worst, layer.spread);
    const std::string rows =
        shape.microbatchSize > 1 ? fmt::format(", {} rows per microbatch", shape.microbatchSize) : std::string();
    return fmt::format("measured: {} on {}, {}{}, spread up to {:.1f} %{}{}", of, device, tool, rows, worst * 100,
                       listed("estimated", estimated), listed("not known", unknown));
}

std::string modelFileText(const LayerProfile& profile, const std::string& origin)
{
    nlohmann::ordered_json json{{"title", profile.shape.name}};
    json.update(shapeToJson(profile.shape));
    json["origin"] = origin;
    return prettyJson(json);
}

std::string layerTableText(const LayerProfile& profile)
{
    std::string text = "layer,forward,input_grad,weight_grad,backward,saved,saved_for_weight_grad,parameters,output,"
                       "spread,peak,rounds,estimated,unknown";
    const std::vector<KnownLayer>& table = profile.shape.table;
    const bool odd = std::any_of(table.begin(), table.end(),
                                 [](const KnownLayer& layer) { return layer.frozen > 0 || layer.shared > 0; });
    if (odd)
        text += ",frozen,shared,shared_with";
    if (AutogradBytes all; profile.shape.autograd)
        forEachAutogradField(all, [&text](const char* column, Bytes) { text += fmt::format(",{}", column); });
    text += '\n';
    for (std::size_t i = 0; i < profile.shape.table.size(); ++i) {
        const KnownLayer& layer = profile.shape.table[i];
        const ProfiledLayer& measured = profile.layers[i];
        text += fmt::format("{},{},{},{},{},{},{},{},{},{:.1f} %,{},{},{},{}", layer.name, exactDuration(layer.forward),
                            exactDuration(layer.inputGrad), exactDuration(layer.weightGrad),
                            exactDuration(layer.backward), exactSize(layer.saved), exactSize(layer.savedForWeightGrad),
                            exactSize(layer.parameters), exactSize(layer.output), measured.spread * 100,
                            measured.peak < 0 ? "" : exactSize(measured.peak), measured.rounds,
                            joined(profile.estimated, " "), joined(profile.unknown, " "));
        if (odd)
            text += fmt::format(",{},{},{}", exactSize(layer.frozen), exactSize(layer.shared), layer.sharedWith);
        if (profile.shape.autograd)
            forEachAutogradField(layer.autograd,
                                 [&text](const char*, Bytes bytes) { text += fmt::format(",{}", exactSize(bytes)); });
        text += '\n';
    }
    return text;
}

} // namespace pipewright
