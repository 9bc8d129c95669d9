// SPDX-License-Identifier: GPL-3.0-or-later
// V-Min, V-Half, V-ZB and 1F1B-V (arXiv 2405.15362): fixed building blocks in a V, repeated, squeezed and
// reordered. They trade bubble for memory: about a third, a half, all and two thirds of that of 1F1B.
#include "core/schedule/blockforms.h"
#include "core/schedule/families/orders.h"

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
    return {"v-min", "V-Min", "A third of the activation memory of 1F1B; suits passes of about equal time.",
            2, false, BackwardStyle::Split, alwaysFine, makeFromBlock<vMinBlock>};
}

Family vHalf()
{
    return {"v-half", "V-Half", "Half of the activation memory of 1F1B and about half of its bubble.",
            2, false, BackwardStyle::Split, alwaysFine, makeFromBlock<vHalfBlock>};
}

Family vZeroBubble()
{
    return {"v-zb", "V-ZB", "No bubble when passes take equal time, in the activation memory of 1F1B.",
            2, false, BackwardStyle::Split, alwaysFine, makeFromBlock<vZeroBubbleBlock>};
}

Family oneForwardOneBackwardV()
{
    return {"1f1b-v", "1F1B-V", "Two thirds of the activation memory of 1F1B without splitting the backward.",
            2, false, BackwardStyle::Full, alwaysFine, makeFromBlock<oneF1BVBlock>};
}

} // namespace pipewright
