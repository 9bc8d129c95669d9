// SPDX-License-Identifier: GPL-3.0-or-later
// A model whose layers are a table of known times and bytes: measured one by one, or given. Its layers have times in
// place of FLOPs, and no dimension can be changed later: the numbers hold only for the microbatch that was measured or
// stated.
#pragma once

#include "core/base/diagnostic.h"
#include "core/model/workload.h"

namespace pipewright {

ModelShape tableShape(std::string name, std::vector<KnownLayer> table, DataType type = DataType::Fp32,
                      std::int64_t microbatchSize = 1);

/// What autograd holds of a layer, under its names in files; one list for writing and reading.
template<class Held, class Visit>
void forEachAutogradField(Held& held, Visit visit)
{
    visit("saved_from_input_grad", held.fromInputGrad);
    visit("kept_gradient", held.gradient);
    visit("kept_input", held.input);
    visit("kept_output", held.output);
    visit("saved_by_loss", held.savedByLoss);
    visit("workspace_forward", held.workspaceForward);
    visit("workspace_input_grad", held.workspaceInputGrad);
    visit("workspace_weight_grad", held.workspaceWeightGrad);
    visit("workspace_backward", held.workspaceBackward);
}

/// What a table cannot have: no layers, more kept for W than kept, degrees of parallelism, sequences in pieces.
Diagnostics checkTable(const ModelShape& shape);

/// Precondition: checkTable() is empty.
std::vector<Layer> tableLayers(const ModelShape& shape);

/// The cut into `stages` stages that minimises the work of the longest stage; among equal cuts the one that puts layers
/// into the earliest stages. O(layers^2 x stages). Throws Error when there are fewer layers than stages.
std::vector<int> balancedPartition(const std::vector<Layer>& layers, int stages);

} // namespace pipewright
