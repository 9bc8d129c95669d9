// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/schedule/pipelineshape.h"

#include <unordered_map>

namespace pipewright {

int PipelineShape::chunks() const
{
    std::unordered_map<int, int> stagesOfDevice;
    int most = 1;
    for (const int device : deviceOfStage)
        most = std::max(most, ++stagesOfDevice[device]);
    return most;
}

} // namespace pipewright
