// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/exchange/layernames.h"

#include <fmt/format.h>

#include <numeric>

namespace pipewright {

namespace {

struct Names {
    std::string_view embedding, layers, norm, head;
};

constexpr Names namesOf(ModuleNaming naming)
{
    if (naming == ModuleNaming::Torchtitan)
        return {"tok_embeddings", "layers.", "norm", "lm_head"};
    return {"model.embed_tokens", "model.layers.", "model.norm", "lm_head"};
}

} // namespace

std::vector<std::vector<std::string>> moduleNames(const Design& design, ModuleNaming naming, Diagnostics& diagnostics)
{
    const std::vector<int>& partition = design.layersPerStage;
    if (!design.workload || partition.empty()) {
        diagnostics.push_back({Severity::Note, "model",
                               "the design has no model, so which modules a stage holds is left out",
                               "the framework then divides the layers itself"});
        return {};
    }
    const std::vector<Layer>& layers = design.workload->layers;
    if (std::accumulate(partition.begin(), partition.end(), std::int64_t{0}) != static_cast<std::int64_t>(layers.size())
        || partition.size() != design.schedule.deviceOfStage.size())
        throw Error(
            "layers_per_stage",
            fmt::format("the partition does not fit {} layers on {} stages", layers.size(), design.schedule.stages()),
            "state one number per stage, with embedding and head counted as layers");
    const Architecture architecture = design.workload->shape.architecture;
    if (architecture != Architecture::Decoder && architecture != Architecture::Table)
        diagnostics.push_back({Severity::Warning, "model", "the names of the modules are those of a decoder",
                               "replace them by the names in your model"});
    const Names names = namesOf(naming);
    std::vector<std::vector<std::string>> result;
    std::size_t layer = 0;
    int number = 0;
    for (const int count : partition) {
        std::vector<std::string>& stage = result.emplace_back();
        for (int i = 0; i < count; ++i, ++layer)
            switch (layers[layer].kind) {
            case LayerKind::Embedding: stage.emplace_back(names.embedding); break;
            case LayerKind::Head:
                stage.emplace_back(names.norm);
                stage.emplace_back(names.head);
                break;
            case LayerKind::Transformer:
            case LayerKind::Mlp: stage.push_back(fmt::format("{}{}", names.layers, number++)); break;
            case LayerKind::Other: stage.push_back(layers[layer].name); break; // in a table: under its own name
            }
    }
    return result;
}

} // namespace pipewright
