// SPDX-License-Identifier: GPL-3.0-or-later
// V-Min, V-Half, V-ZB and 1F1B-V (arXiv 2405.15362): fixed building blocks in a V, repeated, squeezed and
// reordered. They trade bubble for memory: about a third, a half, all and two thirds of that of 1F1B. The blocks are
// defined in buildingblock/vhalf.cpp.
#include "core/buildingblock/vhalf.h"
#include "core/families/orders.h"

namespace pipewright {

namespace {

template<BuildingBlock (*form)(int)>
Schedule makeFromBlock(const FamilyParameters& p)
{
    UnrollOptions asPublished;
    asPublished.keepShorter = false;
    return unroll(form(p.devices), p.microbatches, asPublished);
}

} // namespace

Family vMin()
{
    return {.name = "v-min",
            .title = "V-Min",
            .description = "A third of the activation memory of 1F1B; suits passes of about equal time.",
            .defaultChunks = 2,
            .backward = BackwardStyle::Split,
            .make = makeFromBlock<vMinBlock>};
}

Family vHalf()
{
    return {.name = "v-half",
            .title = "V-Half",
            .description = "Half of the activation memory of 1F1B and about half of its bubble.",
            .defaultChunks = 2,
            .backward = BackwardStyle::Split,
            .make = makeFromBlock<vHalfBlock>};
}

Family vZeroBubble()
{
    return {.name = "v-zb",
            .title = "V-ZB",
            .description = "No bubble when passes take equal time, in the activation memory of 1F1B.",
            .defaultChunks = 2,
            .backward = BackwardStyle::Split,
            .make = makeFromBlock<vZeroBubbleBlock>};
}

Family oneForwardOneBackwardV()
{
    return {.name = "1f1b-v",
            .title = "1F1B-V",
            .description = "Two thirds of the activation memory of 1F1B without splitting the backward.",
            .defaultChunks = 2,
            .backward = BackwardStyle::Full,
            .make = makeFromBlock<oneF1BVBlock>};
}

} // namespace pipewright
