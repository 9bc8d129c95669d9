// SPDX-License-Identifier: GPL-3.0-or-later
// The times of a layer's operations on a device: by the rates that were measured there (core/rates), shape by shape, or
// where it has none by its peak times one efficiency. Layers that are alike are looked up once.
//
// With rates, what is bound by memory takes time too; without, only rows that an embedding gathers.
#pragma once

#include "core/cluster/cluster.h"
#include "core/design/membertimes.h"
#include "core/design/ratedwork.h"
#include "core/model/workload.h"

#include <vector>

namespace pipewright {

struct ComputedLayer {
    MemberTimes::Seconds seconds;
    double attentionCore = 0; ///< seconds of the forward's attention alone
    PassOrigins origins;
};

class OperationTimes {
public:
    /// The device stays where it is. Precondition: it has a peak for the products of the model.
    OperationTimes(const DeviceSpec& device, const NumberTypes& types);

    const DeviceSpec& device() const { return m_device; }
    /// The layer's computing in the three passes. The reference stays good until the next call.
    const ComputedLayer& of(const Layer& layer);
    /// Bytes per second that kernels bound by memory reach; 0: not known.
    double memoryRate() const;

private:
    struct Known {
        LayerKind kind;
        std::vector<ProductSize> products;
        std::vector<AttentionSize> attentions;
        MovedByKind moved;
        ComputedLayer computed;
    };
    ComputedLayer byFormula(const Layer& layer) const;
    ComputedLayer byRates(const Layer& layer) const;
    Rate rateOf(const RatedShape& shape) const;
    double formulaRate(const RatedShape& shape) const;
    /// FLOP/s of products and attention in their types; of what is bound by memory bytes/s. 0: not known.
    double peakOf(const RatedShape& shape) const;

    const DeviceSpec& m_device;
    NumberTypes m_types;
    std::vector<Known> m_known;
    ComputedLayer m_last;
};

} // namespace pipewright
