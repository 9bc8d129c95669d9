// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/training/tiedgradients.h"

namespace pipewright {

void sumTiedGradients(const kernels::Operations& operations, const ParameterLayout& layout, std::span<float> gradients)
{
    const Parameter* root = layout.embeddingMatrix();
    const Parameter* other = layout.headMatrix();
    if (!root || !other)
        return;
    operations.run(kernels::Add{root->in(gradients), other->in(gradients)});
    operations.copy(root->in(gradients), other->in(gradients));
}

} // namespace pipewright
