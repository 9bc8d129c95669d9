// SPDX-License-Identifier: GPL-3.0-or-later
// Experts that are shared out over all devices of a stage (MoE parallel folding): a small mixture on 4 tensor-parallel,
// 2 context-parallel and 4 data-parallel devices, with every number worked out by hand.
#include "core/design/membertimes.h"
#include "core/design/redesign.h"
#include "core/design/stagecosts.h"
#include "core/exchange/torchtitan.h"
#include "core/files/designfile.h"
#include "core/model/parallelism.h"
#include "core/model/transformer.h"
#include "core/predict/predict.h"
#include "errorof.h"
#include "makers/designs.h"
#include "testmain.h"

#include <QTest>

#include <cmath>

using namespace pipewright;
using namespace pipewright::test;

namespace {

constexpr std::int64_t hidden = 64, expertWidth = 96, oneExpert = 3 * hidden * expertWidth, experts = 32;
constexpr Parallelism folded32{
    .tensor = 4, .sequence = true, .context = 2, .expert = 32, .data = 4, .foldedExperts = true};

/// Of 2 sequences of 32 tokens a context-parallel member has 32, and one of its tensor-parallel members 8.
ModelShape mixture(const Parallelism& parallel, int sharedExperts = 0)
{
    ModelShape shape;
    shape.name = "small mixture";
    shape.layers = 4;
    shape.hidden = hidden;
    shape.heads = 8;
    shape.keyValueHeads = 4;
    shape.headSize = 8;
    shape.ffn = 128;
    shape.gatedMlp = true;
    shape.activation = Activation::Silu;
    shape.bias = shape.queryKeyValueBias = shape.learnedPositions = shape.tiedHead = false;
    shape.vocabulary = 256;
    shape.sequence = 32;
    shape.microbatchSize = 2;
    shape.dataType = DataType::Bf16;
    shape.attention = AttentionMemory::Streamed;
    shape.experts = experts;
    shape.expertsPerToken = 2;
    shape.sharedExperts = sharedExperts;
    shape.expertFfn = expertWidth;
    shape.parallel = parallel;
    return shape;
}

Workload workloadOf(const Parallelism& parallel, int sharedExperts = 0)
{
    return makeWorkload(mixture(parallel, sharedExperts), Optimizer::AdamW, "test");
}

Layer layerOf(const Parallelism& parallel, int sharedExperts = 0)
{
    return workloadOf(parallel, sharedExperts).layers[1];
}

std::int64_t elementsOf(const Layer& layer, std::string_view name)
{
    for (const SavedTensor& tensor : layer.saved)
        if (tensor.name == name)
            return tensor.elements;
    return -1;
}

std::vector<std::array<std::int64_t, 4>> productsOf(const Layer& layer)
{
    std::vector<std::array<std::int64_t, 4>> products; // experts, rows, inner, columns
    for (const ProductSize& size : layer.products)
        products.push_back({size.experts, size.rows, size.inner, size.columns});
    std::sort(products.begin(), products.end());
    return products;
}

Cluster nodes(int devices = 1)
{
    return PresetLibrary().cluster("a100-nodes", devices, 32);
}

std::string faultOf(const Parallelism& parallel, int sharedExperts = 0)
{
    const Diagnostics faults = checkParallelism(mixture(parallel, sharedExperts));
    return faults.empty() ? std::string() : faults.front().where + ": " + faults.front().what + faults.front().hint;
}

bool isAbout(double found, double expected)
{
    return std::abs(found - expected) <= 1e-9 * std::abs(expected);
}

} // namespace

class FoldedExpertsTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void aMemberHoldsWholeExpertsAndWorksOnItsOwnTokens()
    {
        const Layer layer = layerOf(folded32), apart = layerOf({.tensor = 4, .sequence = true, .context = 2});
        QCOMPARE(layer.expertParameters, oneExpert);
        // Split: all 32 experts, a quarter of each. Attention, norms and router are the same.
        QCOMPARE(apart.parameters - layer.parameters, experts * oneExpert / 4 - oneExpert);
        // 8 tokens, twice each.
        constexpr std::int64_t tokens = 8, copies = 16;
        const std::vector<std::array<std::int64_t, 4>> expected{{0, tokens, hidden, experts},
                                                                {0, 32, 16, hidden},                  // projection
                                                                {0, 32, hidden, 16 + 2 * 8},          // q, k, v
                                                                {1, copies, hidden, 2 * expertWidth}, // gate, up
                                                                {1, copies, expertWidth, hidden}};
        auto found = productsOf(layer);
        auto wanted = expected;
        std::sort(wanted.begin(), wanted.end());
        QCOMPARE(found, wanted);
        for (const auto& [name, elements] : {std::pair{"experts.fc1.input", copies * hidden},
                                             {"experts.fc2.input", copies * expertWidth},
                                             {"experts.output", copies * hidden},
                                             {"router.input", tokens * hidden},
                                             {"router.outputGrad", tokens * experts},
                                             {"router.probabilities", tokens * experts},
                                             {"router.choice", copies},
                                             {"router.row", copies},
                                             {"router.weight", copies},
                                             {"router.begin", experts + 1}})
            QVERIFY2(elementsOf(layer, name) == elements,
                     qPrintable(QString("%1: %2").arg(name).arg(elementsOf(layer, name))));
        // A quarter of the tokens through four times the width; and four times fewer through the router.
        QCOMPARE(apart.forwardFlops - layer.forwardFlops, 2.0 * 24 * hidden * experts);
        const auto& moved = layer.moved[static_cast<std::size_t>(Movement::Permutation)];
        // Sorted twice: read and written; summed: read, and written once for each token.
        QCOMPARE(moved.forward.bytes, 2.0 * (2 * copies * hidden + copies * hidden + tokens * hidden) * 2);
    }

    void tokensStayWhereTheyAreButForTheirExpert()
    {
        const Bytes gathered = 32 * hidden * 2;
        const auto trafficOf = [](const Layer& layer, GroupAxis axis) {
            std::vector<GroupTraffic> found;
            for (const GroupTraffic& each : layer.traffic)
                if (each.axis == axis)
                    found.push_back(each);
            return found;
        };
        const Layer layer = layerOf(folded32), shared = layerOf(folded32, 2);
        using Traffics = std::vector<GroupTraffic>;
        // Attention alone gathers and scatters; with shared experts, which stay split, their MLP too.
        QCOMPARE(trafficOf(layer, GroupAxis::Tensor),
                 (Traffics{{GroupAxis::Tensor, GroupExchange::GatherOrScatter, gathered, 2, 2, 0}}));
        QCOMPARE(trafficOf(shared, GroupAxis::Tensor),
                 (Traffics{{GroupAxis::Tensor, GroupExchange::GatherOrScatter, gathered, 4, 4, 0}}));
        QCOMPARE(shared.parameters - layer.parameters, 2 * oneExpert / 4);
        QCOMPARE(trafficOf(layer, GroupAxis::Expert),
                 (Traffics{{GroupAxis::Expert, GroupExchange::AllToAll, 8 * 2 * hidden * 2, 2, 2, 0}}));
        QCOMPARE(trafficOf(layer, GroupAxis::Context), trafficOf(shared, GroupAxis::Context));
    }

    void tokensThatChooseUnevenlyFillTheFullestMember()
    {
        Parallelism uneven = folded32;
        uneven.expertSpread = 1.5;
        const Layer layer = layerOf(uneven);
        QCOMPARE(elementsOf(layer, "experts.fc1.input"), 24 * hidden);
        QCOMPARE(elementsOf(layer, "router.choice"), std::int64_t{16}); // it sends as many as ever
        for (const GroupTraffic& each : layer.traffic)
            if (each.axis == GroupAxis::Expert)
                QCOMPARE(each.bytes, Bytes{24 * hidden * 2});
    }

    /// 32 devices of a stage on four nodes of eight; a link inside has 300 GB/s and 10 us, one outside 25 GB/s, 15 us.
    void groupsAreSuccessiveDevices()
    {
        const Cluster cluster = nodes();
        const auto allToAll = [&](int expert) {
            Parallelism parallel = folded32;
            parallel.expert = expert;
            const MemberTimes times(cluster, parallel);
            return times.exchanges(layerOf(parallel), GroupAxis::Expert).forward;
        };
        const double bytes = 8 * 2 * hidden * 2;
        QVERIFY(isAbout(allToAll(8), 2 * (10e-6 + bytes * 7 / 8 / 300e9)));
        QVERIFY(isAbout(allToAll(4), 2 * (10e-6 + bytes * 3 / 4 / 300e9)));
        // Over two nodes, and over four: what stays on the own node takes its links, and less time.
        QVERIFY(isAbout(allToAll(16), 2 * (15e-6 + bytes * 8 / 16 / 25e9)));
        QVERIFY(isAbout(allToAll(32), 2 * (15e-6 + bytes * 24 / 32 / 25e9)));
        // Split experts are only exchanged between copies, a node apart.
        const MemberTimes apart(cluster, {.tensor = 4, .sequence = true, .context = 2, .expert = 4, .data = 4});
        const Layer layer = layerOf({.tensor = 4, .sequence = true, .context = 2, .expert = 4, .data = 4});
        QVERIFY(isAbout(apart.exchanges(layer, GroupAxis::Expert).forward, 2 * (15e-6 + bytes * 3 / 4 / 25e9)));
    }

    void gradientsOfAnExpertAreSummedOverTheDevicesThatHoldIt()
    {
        const Cluster cluster = nodes();
        const auto sum = [&](int expert) {
            Parallelism parallel = folded32;
            parallel.expert = expert;
            const Layer layer = layerOf(parallel);
            const double all =
                MemberTimes(cluster, parallel).overCopies(Collective::ReduceScatter, {&layer, 1}, 0, {4, 4});
            const double others = 4.0 * double(layer.parameters - layer.expertParameters);
            return all - (7 * 15e-6 + others * 7 / 8 / 25e9); // those of the rest: 2 x 4 members, over all nodes
        };
        const auto ofExperts = [](int expert) { return 4.0 * double(experts / expert * oneExpert); };
        QVERIFY(std::abs(sum(32)) < 1e-15); // nobody else has them
        QVERIFY(std::abs(sum(8) - (3 * 15e-6 + ofExperts(8) * 3 / 4 / 25e9)) < 1e-12);
        QVERIFY(std::abs(sum(1) - (31 * 15e-6 + ofExperts(1) * 31 / 32 / 25e9)) < 1e-12);
    }

    void statesAreSharedOutOverTheSameDevices()
    {
        const auto stateOf = [](int expert, Zero zero) {
            Parallelism parallel = folded32;
            parallel.expert = expert;
            const Workload workload = workloadOf(parallel);
            Costs costs;
            applyBytes(workload, {1, 4, 1}, {{}, zero}, costs);
            const Layer& layer = workload.layers[1];
            return std::pair(costs.stages[1].optimizerState, 4 * (layer.parameters - layer.expertParameters));
        };
        constexpr Bytes perParameter = 12;
        for (const auto& [expert, holders] : {std::pair{32, 1}, {8, 4}, {2, 16}, {1, 32}}) {
            const std::int64_t ofExperts = 4 * (experts / expert) * oneExpert;
            const auto [whole, others] = stateOf(expert, {});
            QCOMPARE(whole, perParameter * (others + ofExperts));
            const auto [shared, same] = stateOf(expert, {.level = 1}); // the others over 2 x 4 devices
            QCOMPARE(shared, perParameter * ((others + 7) / 8 + ofExperts / holders));
            // Over copies alone: those that have the expert, as far as they see other sequences.
            const auto [copies, again] = stateOf(expert, {.level = 1, .over = Zero::Over::Data});
            QCOMPARE(copies, perParameter * ((others + 3) / 4 + ofExperts / std::min(holders, 4)));
            QVERIFY(same == others && again == others);
        }
    }

    void withoutFoldingOverTensorTheExpertsAreThoseOfContext()
    {
        // One tensor-parallel member: the same as experts over copies, but for who stands in the group.
        const Parallelism over{.context = 2, .expert = 4, .data = 4, .foldedExperts = true};
        Parallelism apart = over;
        apart.foldedExperts = false;
        QCOMPARE(layerOf(over), layerOf(apart));
        QCOMPARE(over.holdersOfExpert(), apart.holdersOfExpert());
        QVERIFY(faultOf(apart).empty());
        apart.expert = 8;
        QVERIFY(faultOf(apart).find("share them out over all devices of a stage") != std::string::npos);
        Parallelism eight = over;
        eight.expert = 8;
        QVERIFY(faultOf(eight).empty());
    }

    void whatCannotBeFoldedIsNamed()
    {
        QVERIFY(faultOf(folded32).empty());
        Parallelism wrong = folded32;
        wrong.sequence = false;
        QVERIFY(faultOf(wrong).find("model.parallel.folded_experts: tensor-parallel members have the same tokens")
                != std::string::npos);
        wrong = folded32;
        wrong.data = 3; // 24 devices
        QVERIFY(faultOf(wrong).find("model.parallel.expert: 24 devices of a stage cannot share out experts by 32")
                != std::string::npos);
        QVERIFY(faultOf({.expert = 2, .data = 2, .foldedExperts = true}).find("no tensor- or context-parallel members")
                != std::string::npos);
        QVERIFY(faultOf({.foldedExperts = true}).find("model.parallel.folded_experts") != std::string::npos);
        ModelShape dense = mixture(folded32);
        dense.experts = dense.expertsPerToken = 0;
        dense.expertFfn = 0;
        dense.parallel.expert = 1;
        const Diagnostics faults = checkParallelism(dense);
        QVERIFY(!faults.empty() && faults.front().what == "the model has no experts");
        // Whole experts may have any width; shared ones are split.
        Parallelism three{.tensor = 4, .sequence = true, .expert = 4, .foldedExperts = true};
        ModelShape odd = mixture(three);
        odd.expertFfn = 98;
        QVERIFY(checkParallelism(odd).empty());
        odd.sharedExperts = 1;
        QVERIFY(checkParallelism(odd).front().what.find("98 columns of the shared experts") != std::string::npos);
        odd.sharedExperts = 2;
        QVERIFY(checkParallelism(odd).empty());
    }

    void designsSayIt()
    {
        DesignRequest request = test::requestFor("1f1b", 2, 8);
        request.model = "mixtral-8x7b";
        request.cluster = "h100-nodes";
        request.parallel = Parallelism{.tensor = 4, .sequence = true, .expert = 8, .data = 2, .foldedExperts = true};
        const Design design = makeDesign(request);
        QCOMPARE(textOf(design.workload->shape.parallel),
                 std::string("tensor 4 with sequence, expert 8 folded over tensor and context, data 2"));
        const auto json = designToJson(design);
        QVERIFY(json.find("\"folded_experts\": true") != std::string::npos);
        QCOMPARE(designFromJson(json, "test"), design);
        QVERIFY(designToJson(withParallelism(design, {.tensor = 4, .sequence = true, .data = 2})).find("folded")
                == std::string::npos);
        std::string wrong = json;
        wrong.replace(wrong.find("\"folded_experts\": true"), 22, "\"folded_experts\": 1");
        QVERIFY(errorOf([&] { (void)designFromJson(wrong, "test"); }).find("folded_experts") != std::string::npos);
        QVERIFY(!whyNotRunnable(design.workload->shape).empty());
        // Eight experts over the eight devices of a stage: one each.
        QCOMPARE(design.workload->layers[1].expertParameters, 3 * std::int64_t{4096} * 14336);
        bool warned = false;
        for (const Diagnostic& each : torchtitanConfig(design, "order.csv").diagnostics)
            warned = warned || each.what.find("expert 8 folded over tensor and context") != std::string::npos;
        QVERIFY(warned);
    }
};

PIPEWRIGHT_TEST(FoldedExpertsTest, NoApplication)
#include "tst_foldedexperts.moc"
