// SPDX-License-Identifier: GPL-3.0-or-later
// The cost of one instruction as a function of the sharding ratios. A charge is the maximum over devices of an
// expression that is linear in the device's share. So one type serves both the search, which needs seconds, and the
// linear program, which needs coefficients. Devices wait for each other at every charge, as in the objective of arXiv
// 2401.05965.
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
    int segment = -1;                              ///< whose ratios; -1: does not depend on the ratios
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
