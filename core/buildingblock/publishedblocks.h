// SPDX-License-Identifier: GPL-3.0-or-later
// The published schedules that are a repeated building block (arXiv 2405.15362: figures 1, 3 and 18, tables 8
// and 9). F, I and W take one unit and a full B two. Those in a V are in vhalf.h.
#pragma once

#include "core/buildingblock/buildingblock.h"

namespace pipewright {

// One stage per device. At the right: the lifespan on device r (from 0) in units of T.
BuildingBlock oneF1BBlock(int devices);                  // p - r
BuildingBlock eagerBlock(int devices);                   // 2(p - r) - 1
BuildingBlock gpipeBlock(int devices, int microbatches); // the whole step
BuildingBlock zeroBubbleH1Block(int devices);            // p
BuildingBlock zeroBubbleH2Block(int devices);            // 2p - 1
/// Two chunks per device in a loop: interleaved 1F1B at uniform distances.
BuildingBlock interleavedBlock(int devices);

} // namespace pipewright
