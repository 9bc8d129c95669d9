// SPDX-License-Identifier: GPL-3.0-or-later
// What one instruction costs, as a function of the sharding ratios. A charge is the largest, over devices, of an
// expression that is linear in the share of each: so that one type serves the search, which wants seconds, and the
// linear program, which wants coefficients. Devices wait for each other at every charge, as the objective of arXiv
// 2401.05965 has it.
#pragma once

#include "core/sharding/machine.h"
#include "core/sharding/relation.h"

#include <cstdint>
#include <vector>

namespace pipewright::sharding {

/// The pass in which a charge is paid.
enum class Pass : std::uint8_t { Forward, InputGrad, WeightGrad };

struct Charge {
    Pass pass = Pass::Forward;
    bool communicates = false;
    Collective collective = Collective::AllGather; ///< when it communicates
    int segment = -1;                              ///< whose ratios; -1: the size is the same whatever they are
    int otherSegment = -1;                         ///< of an exchange between two cuts
    double bytes = 0;                              ///< of the whole tensor, when it communicates
    double fixedFlops = 0, splitFlops = 0;         ///< on every device; divided by the ratios
    double fixedTraffic = 0, splitTraffic = 0;     ///< bytes through memory

    bool operator==(const Charge&) const = default;
};

/// constant + slope · share of the device in `segment`; a charge is the largest such line.
struct Line {
    double constant = 0, slope = 0;
    int device = 0, segment = -1;
};
std::vector<Line> linesOf(const Charge& charge, const Machine& machine);

/// Seconds.
double seconds(const Charge& charge, const Machine& machine, const Ratios& ratios);
double seconds(const std::vector<Charge>& charges, const Machine& machine, const Ratios& ratios);

/// The cheaper of a collective on equal pieces, padded to the largest, and its grouped form on exact ones.
Charge cheaperOf(Collective padded, Collective grouped, Charge charge, const Machine& machine, const Ratios& ratios);

} // namespace pipewright::sharding
