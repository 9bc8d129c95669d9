// SPDX-License-Identifier: GPL-3.0-or-later
// Where devices stand, and what they therefore pay, worked out here a second time: pair by pair, and ring by ring over
// the members of groups.
#include "core/design/redesign.h"
#include "core/predict/predict.h"
#include "core/search/partition.h"
#include "relations/question.h"
#include "testmain.h"

#include <map>
#include <numeric>
#include <optional>

using namespace pipewright;
using namespace pipewright::test;

namespace {

/// Of two devices by their numbers, `senders` of a node at the same time.
LinkSpec wire(const Cluster& cluster, int from, int to, int senders)
{
    const Nodes& nodes = cluster.nodes;
    if (nodes.devices == 0 || from / nodes.devices == to / nodes.devices)
        return cluster.link;
    LinkSpec link = nodes.network;
    link.bandwidth *= std::min(1.0, double(nodes.cards) / senders);
    const int perSwitch = nodes.devices * nodes.perSwitch;
    if (perSwitch > 0 && from / perSwitch != to / perSwitch)
        link.bandwidth =
            std::min(link.bandwidth, nodes.network.bandwidth * nodes.cards / nodes.devices / nodes.oversubscription);
    return link;
}

/// The cluster without nodes, with every pair of its devices listed instead.
Cluster listed(const Cluster& cluster)
{
    Cluster flat = cluster;
    flat.nodes = {};
    const int devices = static_cast<int>(cluster.devices.size()), perNode = cluster.nodes.devices;
    for (int from = 0; perNode > 0 && from < devices; ++from)
        for (int to = 0; to < devices; ++to)
            if (from / perNode != to / perNode) {
                LinkSpec link = wire(cluster, from, to, 1);
                if (cluster.nodes.cards < perNode)
                    link.bus = fmt::format("cards of {}", from / perNode);
                flat.linkOfPair[{from, to}] = link;
            }
    return flat;
}

struct Place {
    int pipeline = 0, data = 0, context = 0, tensor = 0;
    auto operator<=>(const Place&) const = default;
};

/// Seconds of gathering `bytes` in the rings whose members `ringOf` puts together, in the order of their numbers, over
/// the slowest of all their hops.
template<typename Ring>
double gather(const Design& design, double bytes, Ring ringOf)
{
    const Parallelism& p = design.workload->shape.parallel;
    std::map<Place, std::vector<int>> rings;
    int number = 0;
    for (int s = 0; s < std::ssize(design.cluster.devices); ++s)
        for (int d = 0; d < p.data; ++d)
            for (int c = 0; c < p.context; ++c)
                for (int t = 0; t < p.tensor; ++t)
                    rings[ringOf(Place{s, d, c, t})].push_back(number++);
    const auto count = static_cast<double>(rings.begin()->second.size());
    if (count < 2)
        return 0;
    std::optional<LinkSpec> slowest;
    for (const auto& [place, members] : rings)
        for (std::size_t i = 0; i < members.size(); ++i) {
            const LinkSpec hop = wire(design.cluster, members[i], members[(i + 1) % members.size()],
                                      std::max(1, design.cluster.nodes.devices));
            if (!slowest || std::pair(-hop.bandwidth, hop.latency) > std::pair(-slowest->bandwidth, slowest->latency))
                slowest = hop;
        }
    return (count - 1) * (double(slowest->latency) / 1e9 + bytes / count / slowest->bandwidth);
}

/// Blocks without what members exchange.
Design silent(const Design& design)
{
    Cluster cluster = design.cluster;
    cluster.link = {"none", 0, 0};
    cluster.nodes = {};
    return withCluster(design, cluster);
}

/// Neighbours in a node change their names.
Design renamed(const Design& design, Draw& draw)
{
    const int devices = design.schedule.devices();
    const int perNode = design.cluster.nodes.devices > 0 ? design.cluster.nodes.devices : devices;
    std::vector<int> name(static_cast<std::size_t>(devices));
    std::iota(name.begin(), name.end(), 0);
    for (int first = 0; first < devices; first += perNode)
        for (int d = first; d < std::min(first + perNode, devices); ++d)
            std::swap(name[static_cast<std::size_t>(d)],
                      name[static_cast<std::size_t>(first + draw.upTo(d - first + 1) - 1)]);
    Design other = design;
    const auto rename = [&](std::vector<int>& list) {
        for (int& device : list)
            device = name[static_cast<std::size_t>(device)];
    };
    rename(other.schedule.deviceOfStage);
    for (std::vector<int>& placement : other.schedule.replicaPlacements)
        rename(placement);
    for (std::vector<int>& turns : other.schedule.dataParallelDevices)
        rename(turns);
    for (std::size_t d = 0; d < name.size(); ++d)
        other.schedule.order[static_cast<std::size_t>(name[d])] = design.schedule.order[d];
    return other;
}

} // namespace

class PlacesTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    /// Replicas, workers, hops of every kind: nodes are nothing but a list of the links of all pairs.
    void nodesAreTheLinksOfAllTheirPairs()
    {
        RELATION_HOLDS(brokenRelation(60, {.degrees = false}, [](const Question& question, Draw&) -> Answer {
            const Design& design = question.design;
            Design flat = withCluster(design, listed(design.cluster));
            if (!design.dataflow.shared.empty() && design.schedule.replicas() > 1)
                flat.dataflow.shared.clear(); // one time for all replicas, whose pairs differ
            Design onNodes = design;
            onNodes.dataflow = flat.dataflow;
            return unequal("the step", predict(onNodes).metrics.makespan, predict(flat).metrics.makespan);
        }));
    }

    void nodesHoldTheDevicesOfAllReplicas()
    {
        RELATION_HOLDS(brokenRelation(20, {}, [](const Question& question, Draw&) -> Answer {
            const Design& design = question.design;
            const Nodes& nodes = design.cluster.nodes;
            const std::int64_t all = design.schedule.devices() * design.workload->shape.parallel.devicesPerStage();
            if (nodes.devices == 0 || all <= nodes.devices)
                return otherQuestion;
            DesignRequest fewer = question.request;
            fewer.nodes.count = static_cast<int>((all - 1) / nodes.devices);
            try {
                (void)makeDesign(fewer);
            } catch (const Error&) {
                return holds;
            }
            return QString("%1 nodes hold %2 devices").arg(*fewer.nodes.count).arg(all);
        }));
    }

    /// Gradients over all that hold the same parameters: data and context; an expert's over those of them that have it.
    void membersSumTheirGradientsInARing()
    {
        RELATION_HOLDS(brokenRelation(60, {}, [](const Question& question, Draw&) -> Answer {
            const Design& design = question.design;
            const Parallelism& p = design.workload->shape.parallel;
            const Design alone = silent(design);
            std::size_t l = 0;
            for (std::size_t s = 0; s < design.costs.stages.size(); ++s) {
                double experts = 0, others = 0;
                for (int i = 0; i < design.layersPerStage[s]; ++i, ++l) {
                    const Layer& layer = design.workload->layers[l];
                    experts += double(layer.expertParameters * design.workload->state.gradient);
                    others += double((layer.parameters - layer.expertParameters) * design.workload->state.gradient);
                }
                for (const SharedParameter& shared :
                     design.dataflow.shared) { // one matrix, which its root's stage sums
                    const std::vector<int>& placement = design.schedule.deviceOfStage;
                    if (shared.otherStage == int(s) && !shared.copied
                        && placement[std::size_t(shared.rootStage)] == placement[s])
                        others -= double(shared.bytes);
                }
                double sums = 0;
                // Scattered gradients, then gathered sums, or new parameters where the optimizer's state is shared out.
                const StateBytesPerParameter& state = design.workload->state;
                for (const int bytes :
                     {state.gradient, design.schedule.zero.level > 0 ? state.parameter : state.gradient}) {
                    const double of = double(bytes) / state.gradient;
                    sums += gather(design, of * others, [](const Place& at) {
                        return Place{at.pipeline, 0, 0, at.tensor};
                    });
                    if (experts > 0)
                        sums += gather(design, of * experts, [&](const Place& at) {
                            if (p.foldedExperts) // by their numbers in a stage
                                return Place{at.pipeline,
                                             ((at.data * p.context + at.context) * p.tensor + at.tensor) % p.expert};
                            return Place{at.pipeline, at.data % p.expert, 0, at.tensor};
                        });
                }
                const StageCosts& stage = design.costs.stages[s];
                if (const QString wrong = unlike("the exchanges of a stage in ns",
                                                 double(stage.reduceGradients + stage.gather), sums * 1e9, 1e-5);
                    !wrong.isEmpty())
                    return wrong;
                if (stage.update != alone.costs.stages[s].update)
                    return QStringLiteral("an update has a part of the exchanges");
            }
            return holds;
        }));
    }

    /// A layer gathers and scatters its tokens four times over the tensor-parallel members, or sums twice, and gathers
    /// keys and values over the context-parallel ones.
    void membersExchangeTokensAndKeysInARing()
    {
        RELATION_HOLDS(brokenRelation(30, {}, [](const Question& question, Draw&) -> Answer {
            const Design& design = question.design;
            const ModelShape& shape = design.workload->shape;
            const Parallelism& p = shape.parallel;
            if (shape.experts > 0 || shape.keyValueLatent > 0 || design.costs.stages.size() < 3)
                return otherQuestion;
            const double bytes = bytesOf(shape.dataType);
            const double tokens = double(shape.tokens()) / p.context;
            const double ofTensor = gather(design, tokens * double(shape.hidden) * bytes, [](const Place& at) {
                return Place{at.pipeline, at.data, at.context, 0};
            });
            const double keys = 2 * std::max(1.0, double(shape.keyValueHeads) / p.tensor) * double(shape.headSize);
            const double ofContext = gather(design, double(shape.tokens()) * keys * bytes, [](const Place& at) {
                return Place{at.pipeline, at.data, 0, at.tensor};
            });
            const double exchanges = design.layersPerStage[1] * (4 * ofTensor + ofContext) * 1e9;
            return unlike("the forward of a stage in ns", double(design.costs.stages[1].forward),
                          double(silent(design).costs.stages[1].forward) + exchanges, 1e-5);
        }));
    }

    void namesOfDevicesDoNotMatter()
    {
        RELATION_HOLDS(brokenRelation(40, {.degrees = false}, [](const Question& question, Draw& draw) -> Answer {
            const Design& design = question.design;
            const Prediction &one = question.prediction, other = predict(renamed(design, draw));
            Bytes peak = 0, otherPeak = 0;
            for (std::size_t d = 0; d < one.metrics.devices.size(); ++d) {
                peak += one.metrics.devices[d].peakBytes;
                otherPeak += other.metrics.devices[d].peakBytes;
            }
            const QString wrong = unequal("the step", one.metrics.makespan, other.metrics.makespan);
            return wrong.isEmpty() ? unequal("peaks", peak, otherPeak) : wrong;
        }));
    }

    void theSearchSeesTheSameLinks()
    {
        const Asking asking{.degrees = false, .replicas = false, .families = {"1f1b", "gpipe", "zb-h1"}};
        RELATION_HOLDS(brokenRelation(4, asking, [](const Question& question, Draw& draw) -> Answer {
            const Design& design = question.design;
            const int devices = design.schedule.devices(), perNode = design.cluster.nodes.devices;
            if (question.offload || !design.schedule.recompute.empty() || devices > 8 || perNode == 0
                || perNode >= devices)
                return otherQuestion;
            PartitionOptions options;
            options.search.timeLimit = std::chrono::milliseconds(300);
            options.search.limit.factor = 2;
            options.search.seed = static_cast<std::uint64_t>(draw.upTo(1000));
            options.shapes = {PlacementShape::Free};
            const PartitionResult found = searchPartition(design, options);
            const Design flat = withCluster(found.design, listed(design.cluster));
            return unequal("the step found", found.result.value, predict(flat).metrics.makespan);
        }));
    }
};

PIPEWRIGHT_TEST(PlacesTest, NoApplication)
#include "tst_places.moc"
