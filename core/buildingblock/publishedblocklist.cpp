// SPDX-License-Identifier: GPL-3.0-or-later
// A table: family, title and maker.
#include "core/buildingblock/publishedblocklist.h"

#include "core/buildingblock/publishedblocks.h"
#include "core/buildingblock/vhalf.h"

#include <array>

namespace pipewright {

namespace {

template<BuildingBlock (*make)(int)>
BuildingBlock ofDevices(int devices, int)
{
    return make(devices);
}

} // namespace

std::span<const PublishedBlock> publishedBlocks()
{
    static const std::array forms{
        PublishedBlock{"1f1b", "1F1B", ofDevices<oneF1BBlock>},
        PublishedBlock{"eager-1f1b", "Eager 1F1B", ofDevices<eagerBlock>},
        PublishedBlock{"gpipe", "GPipe", gpipeBlock},
        PublishedBlock{"interleaved-1f1b", "Interleaved 1F1B", ofDevices<interleavedBlock>},
        PublishedBlock{"1f1b-v", "1F1B-V", ofDevices<oneF1BVBlock>},
        PublishedBlock{"zb-h1", "ZB-H1", ofDevices<zeroBubbleH1Block>},
        PublishedBlock{"zb-h2", "ZB-H2", ofDevices<zeroBubbleH2Block>},
        PublishedBlock{"v-min", "V-Min", ofDevices<vMinBlock>},
        PublishedBlock{"v-half", "V-Half", ofDevices<vHalfBlock>},
        PublishedBlock{"v-zb", "V-ZB", ofDevices<vZeroBubbleBlock>},
    };
    return forms;
}

std::optional<BuildingBlock> blockOfFamily(std::string_view family, int devices, int microbatches)
{
    for (const PublishedBlock& form : publishedBlocks())
        if (form.family == family)
            return form.make(devices, microbatches);
    return std::nullopt;
}

} // namespace pipewright
