// SPDX-License-Identifier: GPL-3.0-or-later
// A person's own model wherever a preset's name is taken: a Hugging Face config.json, a model file of ours (the same
// JSON as in resources/models, or what `profile` writes), or a table of layers (.csv).
#pragma once

#include "core/base/diagnostic.h"
#include "core/model/modelshape.h"

#include <string>
#include <string_view>

namespace pipewright {

struct ModelFile {
    ModelShape shape;
    std::string source; ///< "preset llama-3-8b", "config.json: llama, sequences of 4096, …"; shown beside numbers
    Diagnostics notes;  ///< what the formulas leave out
};

/// A preset's name, or the path of a file: anything with a slash or that ends in .json or .csv. Throws Error with the
/// faults by line: which fields an architecture lacks, which ones no formula here can express.
ModelFile loadModel(const std::string& presetOrFile);
bool isModelFile(std::string_view presetOrFile);
/// Whether a text is one of these, as opposed to a design, a schedule or a trace; looks only at its beginning.
bool isModelText(std::string_view text, std::string_view name);

/// Reads the text of a file; `name` is its path, whose ending tells a table from JSON of either kind.
ModelFile readModelFile(std::string_view text, const std::string& name);

/// The header names the columns: layer, forward, input_grad, weight_grad, saved, parameters and output must be there,
/// saved_for_weight_grad (all of `saved` otherwise) and backward (input_grad and weight_grad) may be, the parts of the
/// parameters that are frozen, or shared with the layer named in shared_with, and what autograd holds
/// (forEachAutogradField); one of these means that the layers run in PyTorch. Other columns are ignored. Values have
/// units. Parameters are taken as numbers of 4 bytes.
ModelFile readLayerTable(std::string_view text, const std::string& name);

} // namespace pipewright
