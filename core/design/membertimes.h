// SPDX-License-Identifier: GPL-3.0-or-later
// The time of the collectives between the members of a group (core/model/parallelism.h), over the links that follow
// from their places in the cluster (cluster/nodes.h). A collective costs what was measured on the cluster, or what its
// kind reached over this link by the devices' rates (core/rates), else as much as a ring; Parallelism::overlap is the
// share of it that is hidden behind computing. Tokens reach experts on the same node over its links, and meanwhile
// those on other nodes over the network.
#pragma once

#include "core/cluster/nodes.h"
#include "core/model/workload.h"
#include "core/rates/operationrates.h"

#include <optional>
#include <span>

namespace pipewright {

/// Seconds of the three passes by where their rates come from.
struct PassOrigins {
    OriginSeconds forward{}, inputGrad{}, weightGrad{};
    void add(const PassOrigins& other);
};

class MemberTimes {
public:
    /// Of groups in place of the cluster's devices. Throws Error when its nodes have fewer devices than these need.
    MemberTimes(const Cluster& cluster, const Parallelism& parallel);

    const Parallelism& parallel() const { return m_parallel; }

    struct Seconds {
        double forward = 0, inputGrad = 0, weightGrad = 0;
    };
    /// Of one microbatch, over all axes of the group or over one.
    Seconds exchanges(const Layer& layer, std::optional<GroupAxis> axis = std::nullopt) const;
    /// The same seconds over all axes, by where their rates come from.
    PassOrigins origins(const Layer& layer) const;

    /// The exposed time of exchanges of `seconds` in a block that computes for `computing`: the share that does not
    /// overlap, and the rest that is longer than the compute.
    double exposed(double seconds, double computing) const;

    /// Bytes of a parameter on the way to other copies: usually, and of those that products read in a type of their
    /// own.
    struct BytesPerParameter {
        double usual = 0, narrow = 0;
    };
    /// The time to scatter, or to gather, so many bytes per parameter of these layers over all that hold the same
    /// parameters and see other tokens: the context-parallel members of all copies of the pipeline, or, for an expert,
    /// of the copies that have it. Members of tensor parallelism hold other parameters, of experts too unless these are
    /// folded (Parallelism::holdersOfExpert). A sum over all of them is both, one after the other. `heldElsewhere`: how
    /// many parameters, no experts', another stage of the device has and sums.
    double overCopies(Collective kind, std::span<const Layer> layers, std::int64_t heldElsewhere,
                      const BytesPerParameter& each) const;

private:
    struct Timed {
        double seconds = 0;
        RateOrigin origin = RateOrigin::Formula;
    };
    Timed once(const GroupTraffic& traffic) const;
    Timed toExperts(const GroupTraffic& traffic) const;
    /// Of a whole tensor of `bytes`, or of an all-to-all in which each device sends so many. 0 for one device.
    Timed ringOrRated(RatedOperation kind, const LinkSpec& link, int count, double bytes) const;
    /// Of a device that sends `sent` bytes in so many steps, one after the other, for a tensor of `bytes`.
    Timed sentOrRated(RatedOperation kind, const LinkSpec& link, int count, double bytes, double steps,
                      double sent) const;

    const Cluster& m_cluster;
    Parallelism m_parallel;
    NodeLayout m_layout;
    LinkSpec m_tensor, m_context, m_expert, m_gradients, m_expertGradients;
    int m_expertsOnNode; ///< expert-parallel members on one node
};

} // namespace pipewright
