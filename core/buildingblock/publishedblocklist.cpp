// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/buildingblock/publishedblocklist.h"

#include "core/buildingblock/publishedblocks.h"

#include <array>

namespace pipewright {

namespace {

template<BuildingBlock (*make)(int)>
BuildingBlock ofDevices(int devices, int)
{
    return make(devices);
}

} // namespace

std::span<const BlockForm> blockForms()
{
    static const std::array forms{
        BlockForm{"1f1b", "1F1B", ofDevices<oneF1BBlock>},
        BlockForm{"eager-1f1b", "Eager 1F1B", ofDevices<eagerBlock>},
        BlockForm{"gpipe", "GPipe", gpipeBlock},
        BlockForm{"interleaved-1f1b", "Interleaved 1F1B", ofDevices<interleavedBlock>},
        BlockForm{"1f1b-v", "1F1B-V", ofDevices<oneF1BVBlock>},
        BlockForm{"zb-h1", "ZB-H1", ofDevices<zeroBubbleH1Block>},
        BlockForm{"zb-h2", "ZB-H2", ofDevices<zeroBubbleH2Block>},
        BlockForm{"v-min", "V-Min", ofDevices<vMinBlock>},
        BlockForm{"v-half", "V-Half", ofDevices<vHalfBlock>},
        BlockForm{"v-zb", "V-ZB", ofDevices<vZeroBubbleBlock>},
    };
    return forms;
}

std::optional<BuildingBlock> blockOfFamily(std::string_view family, int devices, int microbatches)
{
    for (const BlockForm& form : blockForms())
        if (form.family == family)
            return form.make(devices, microbatches);
    return std::nullopt;
}

} // namespace pipewright
