// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/run/publishedweights.h"

#include "core/base/diagnostic.h"
#include "core/base/formattedtext.h"
#include "executor/run/publishedparts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <numeric>
#include <set>

namespace pipewright {

namespace {

/// Copies one part from their values into ours, or back.
template<class Ours, class Theirs, class Move>
void forEachValue(const PublishedPart& part, Ours ours, Theirs theirs, Move move)
{
    for (std::int64_t row = 0; row < part.rows; ++row)
        for (std::int64_t column = 0; column < part.columns; ++column)
            move(ours[part.ours.at(row, column)], theirs[part.theirs.at(row, column)]);
}

bool isTiedMatrix(const ModelShape& shape, const std::string& name)
{
    return shape.tiedHead && (name == "lm_head.weight" || name == "cls.predictions.decoder.weight");
}

const char* embeddingName(const ModelShape& shape)
{
    if (shape.architecture == Architecture::Encoder)
        return "bert.embeddings.word_embeddings.weight";
    if (shape.linearBiases)
        return "transformer.word_embeddings.weight";
    return shape.learnedPositions ? "transformer.wte.weight" : "model.embed_tokens.weight";
}

/// The name of a tensor in a file. Files of a model without its head omit the first word, a tied head may be missing,
/// and early BERT files have older names for the two vectors of a norm.
std::string nameIn(const SafetensorsFile& file, const ModelShape& shape, const std::string& name)
{
    if (file.has(name))
        return name;
    if (isTiedMatrix(shape, name))
        return nameIn(file, shape, embeddingName(shape));
    for (const std::string_view model : {"transformer.", "model.", "bert.", "vit."})
        if (name.starts_with(model) && file.has(name.substr(model.size())))
            return name.substr(model.size());
    for (const auto& [now, once] :
         {std::pair<std::string_view, std::string_view>{".LayerNorm.weight", ".LayerNorm.gamma"},
          {".LayerNorm.bias", ".LayerNorm.beta"}})
        if (name.ends_with(now))
            if (const std::string old = name.substr(0, name.size() - now.size()) + std::string(once); file.has(old))
                return old;
    if (const std::string blocks = name + "_blocks"; file.has(blocks))
        throw Error(file.path(), fmt::format("\"{}\" is stored in blocks of four bits (MXFP4)", blocks),
                    "convert the file to bf16, for example by transformers' Mxfp4Config(dequantize=True)");
    return name;
}

} // namespace

void readPublished(const SafetensorsFile& file, const ModelShape& shape, const ParameterLayout& layout,
                   std::span<float> parameters)
{
    for (const Parameter& parameter : layout.parameters()) {
        std::string held;
        std::vector<float> values;
        for (const PublishedPart& part : publishedParts(shape, parameter)) {
            const std::string name = nameIn(file, shape, part.name);
            if (file.shape(name) != part.shape)
                throw Error(file.path(),
                            fmt::format("the tensor \"{}\" is of {}, and the model's is of {}", name,
                                        joined(file.shape(name), " x "), joined(part.shape, " x ")),
                            "give weights of this model, or scale the model to them");
            if (name != held)
                values = file.values(held = name);
            forEachValue(part, parameter.in(parameters), std::span<const float>(values),
                         [&](float& ours, float theirs) { ours = theirs + part.above; });
        }
    }
}

std::vector<std::string> unusedTensors(const SafetensorsFile& file, const ModelShape& shape,
                                       const ParameterLayout& wholeModel)
{
    std::set<std::string> used;
    for (const Parameter& parameter : wholeModel.parameters())
        for (const PublishedPart& part : publishedParts(shape, parameter))
            used.insert(nameIn(file, shape, part.name));
    std::vector<std::string> unused;
    for (const std::string& name : file.names())
        if (!used.contains(name))
            unused.push_back(name);
    return unused;
}

void addPublished(Safetensors& file, const ModelShape& shape, const ParameterLayout& wholeModel,
                  std::span<const float> parameters)
{
    std::map<std::string, std::pair<std::vector<std::int64_t>, std::vector<float>>> tensors;
    for (const Parameter& parameter : wholeModel.parameters())
        for (const PublishedPart& part : publishedParts(shape, parameter)) {
            if (isTiedMatrix(shape, part.name))
                continue;
            auto& [extents, values] = tensors[part.name];
            extents = part.shape;
            values.resize(std::accumulate(extents.begin(), extents.end(), std::int64_t{1}, std::multiplies<>()));
            forEachValue(part, parameter.in(parameters), std::span<float>(values),
                         [&](float ours, float& theirs) { theirs = ours - part.above; });
        }
    for (const auto& [name, tensor] : tensors)
        file.add(name, tensor.first, std::span<const float>(tensor.second));
}

} // namespace pipewright
