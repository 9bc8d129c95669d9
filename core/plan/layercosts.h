// SPDX-License-Identifier: GPL-3.0-or-later
// The least that stages of a model cost on its devices, from the costs of its layers: layers that are alike are costed
// once, for all cuts, kinds of recomputation and ways to share states out. With these the bounds of a plan take no
// formula of their own. Times of a stage are the sums of its layers' (rounded one by one, so a nanosecond of each is
// taken off); what a stage keeps is at least what its layers keep.
#pragma once

#include "core/cluster/cluster.h"
#include "core/design/costs.h"
#include "core/model/workload.h"
#include "core/plan/flatorder.h"
#include "core/schedule/zero.h"

#include <array>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace pipewright {

/// Which layers of a model are alike; that does not depend on its degrees of parallelism and its microbatch.
struct LayerPattern {
    std::vector<std::uint8_t> kindOfLayer;
    int repeated = 0;             ///< ModelShape::layers of the shortest model that has a layer of each kind
    std::vector<int> firstOfKind; ///< in that model
};
LayerPattern patternOf(const Workload& workload);

class LayerCosts {
public:
    /// Whether these bounds hold: devices that differ in their speed alone, and layers that are costed by formula one
    /// by one.
    static bool holdFor(const ModelShape& shape, const Cluster& cluster);

    /// `workload`: the model of `pattern.repeated` layers. `recomputes` and `zeros`: those that are asked for later.
    /// Throws Error when the model cannot be costed; of a kind of recomputation that it cannot have, whyNot() says so.
    LayerCosts(const LayerPattern& pattern, const Workload& workload, const Cluster& cluster, int pipeline,
               std::span<const Recompute> recomputes, std::span<const Zero> zeros);
    /// The same model in pieces of sequences: its states are those of `whole`.
    LayerCosts(const LayerCosts& whole, const LayerPattern& pattern, const Workload& workload, const Cluster& cluster,
               std::span<const Recompute> recomputes);

    /// Why the model cannot be recomputed so; empty: it can.
    const std::string& whyNot(std::size_t recompute) const { return m_whyNot[recompute]; }

    /// One microbatch's work in all layers, on the fastest device, and what its forward leaves behind.
    Nanoseconds work(std::size_t recompute) const;
    Bytes keptByForward(std::size_t recompute) const;
    /// Of all layers, each on one device.
    Bytes states(std::size_t zero) const;

    /// The blocks of stages of so many layers each, in order, as `order` places them.
    KindCosts kinds(const FlatOrder& order, std::span<const int> layersPerStage, std::size_t recompute) const;

    /// What states cost on a device that holds these layers, given as [first, last) runs, each of a stage.
    struct Held {
        Bytes states = 0, optimizer = 0; ///< all the time; of these the optimizer's
        Bytes gathered = 0;              ///< parameters, while they are there
        Bytes whole = 0;                 ///< gradients, from the first one to their sum
        Nanoseconds update = 0;
    };
    using LayerRun = std::pair<int, int>;
    Held held(std::span<const LayerRun> stages, std::size_t zero) const;
    /// To sum the gradients of a stage over the copies, and to gather its parameters.
    struct Exchanges {
        Nanoseconds reduce = 0, gather = 0;
    };
    Exchanges exchanges(LayerRun stage, std::size_t zero) const;

private:
    void costKinds(const std::vector<Layer>& layers, const Workload& workload, const Cluster& cluster,
                   std::span<const Recompute> recomputes);

    static constexpr std::size_t none = ~std::size_t{0};
    /// Of one kind of layer: alone in a stage, and what a second one behind it adds to what is kept.
    struct Kind {
        StageCosts alone;
        std::array<Nanoseconds, opCount> exchange{}; ///< communication parts
        Bytes addsUntilInputGrad = 0, addsUntilWeightGrad = 0, addsFromInputGrad = 0;
        bool readsInput = false; ///< the backward, when it recomputes the layer
    };
    struct State {
        std::vector<Held> ofKind;     ///< of layer
        std::vector<Exchanges> ofRun; ///< by m_runs
    };
    /// By recomputation, by kind of layer.
    using Kinds = std::vector<std::vector<Kind>>;
    Kinds kindsOn(int device, const std::vector<Layer>& layers, const Workload& workload, const Cluster& cluster,
                  std::span<const Recompute> recomputes);
    /// What a block of a stage takes, but its transfers.
    struct Stage {
        StageCosts costs;
        std::array<Nanoseconds, opCount> exchange{};
    };
    Stage stageOf(const std::vector<Kind>& kinds, LayerRun layers) const;

    std::vector<std::uint8_t> m_kindOfLayer;
    std::vector<Kinds> m_kinds;                ///< by speed, the fastest devices' first
    std::vector<std::uint8_t> m_speedOfDevice; ///< in m_kinds
    std::vector<std::string> m_whyNot;
    std::vector<State> m_states; ///< by Zero
    std::size_t m_repeated = 0;  ///< the kind of which there are most
    std::vector<int> m_runs;     ///< numbers of repeated layers, ascending
    Costs m_links;               ///< without stages
};

} // namespace pipewright
