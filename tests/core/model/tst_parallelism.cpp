// SPDX-License-Identifier: GPL-3.0-or-later
// What one member of a group computes, keeps and exchanges, against the published formulas, and what that makes of a
// design's costs.
#include "core/model/parallelism.h"

#include "core/cluster/nodes.h"
#include "core/design/redesign.h"
#include "core/exchange/pytorchcsv.h"
#include "core/files/designfile.h"
#include "core/model/activationmemory.h"
#include "core/model/recomputedtensors.h"
#include "core/model/transformer.h"
#include "core/predict/designcheck.h"
#include "core/predict/predict.h"
#include "core/predict/throughput.h"
#include "core/program/pairtimes.h"
#include "makers/designs.h"
#include "testmain.h"

#include <QTest>

using namespace pipewright;

namespace {

ModelShape preset(const char* name, const Parallelism& parallel = {})
{
    ModelShape shape = PresetLibrary().model(name);
    shape.parallel = parallel;
    return shape;
}

Bytes keptByForward(const Layer& layer)
{
    Bytes bytes = 0;
    for (const SavedTensor& tensor : layer.saved)
        if (tensor.lifetime != Lifetime::FromInputGrad)
            bytes += tensor.bytes();
    return bytes;
}

/// The second layer is the first of the repeated ones.
Layer layerOf(const char* name, const Parallelism& parallel)
{
    const ModelShape shape = preset(name, parallel);
    return makeWorkload(shape, Optimizer::AdamW, "test").layers[1];
}

DesignRequest request(const char* family, int devices, int microbatches, const char* model, const Parallelism& parallel)
{
    DesignRequest r = test::requestFor(family, devices, microbatches);
    r.model = model;
    r.cluster = devices * parallel.devicesPerStage() > 8 ? "a100-nodes" : "a100-node";
    r.parallel = parallel;
    return r;
}

/// megatron-22b on four devices, every stage of which recomputes so.
Design recomputing(const char* family, Recompute recompute)
{
    DesignRequest r = request(family, 4, 8, "megatron-22b", {});
    r.recompute = {recompute, {}};
    return makeDesign(r);
}

std::string faultOf(const char* model, const Parallelism& parallel)
{
    try {
        makeWorkload(preset(model, parallel), Optimizer::AdamW, "test");
    } catch (const Error& error) {
        return error.what();
    }
    return {};
}

Bytes fullest(const Design& design)
{
    Bytes most = 0;
    for (const DeviceMetrics& device : predict(design).metrics.devices)
        most = std::max(most, device.peakBytes);
    return most;
}

} // namespace

class ParallelismTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    /// arXiv 2205.05198, table 2, for the models of its figure 1.
    void aMemberKeepsWhatThePublishedTableSays()
    {
        for (const char* model : {"megatron-22b", "megatron-175b", "megatron-530b", "megatron-1t"})
            for (const int t : {2, 4, 8}) {
                const auto kept = [&](bool sequence, Recompute recompute) {
                    const Layer layer = layerOf(model, {.tensor = t, .sequence = sequence});
                    return double(keptByForward(layer) - recomputedBytes(layer, recompute, 1));
                };
                const auto published = [&](ActivationMode mode) {
                    return activationBytesPerLayer(preset(model), mode, t);
                };
                QCOMPARE(kept(false, Recompute::None), published(ActivationMode::TensorParallel));
                QCOMPARE(kept(true, Recompute::None), published(ActivationMode::SequenceParallel));
                QCOMPARE(kept(false, Recompute::BlockSelective), published(ActivationMode::TensorParallelSelective));
                QCOMPARE(kept(true, Recompute::BlockSelective), published(ActivationMode::SequenceParallelSelective));
                // The published layer keeps its input; here a whole stage keeps one.
                QCOMPARE(kept(false, Recompute::Block), 0.0);
                QCOMPARE(double(layerOf(model, {.tensor = t}).outputBytes), published(ActivationMode::FullRecompute));
            }
    }

    /// The copy that most tokens reach: its experts' products, the copies that it keeps, and what it receives.
    void theFullestCopyIsTheStages()
    {
        const auto at = [](double spread) {
            return layerOf("mixtral-8x7b", {.expert = 8, .data = 8, .expertSpread = spread});
        };
        const Layer even = at(1), uneven = at(1.5);
        const auto experts = [](const Layer& layer) {
            double flops = 0;
            for (const ProductSize& size : layer.products)
                flops += size.experts > 0 ? size.flops() : 0;
            return flops;
        };
        QCOMPARE(experts(uneven), 1.5 * experts(even));
        QCOMPARE(uneven.forwardFlops - even.forwardFlops, 0.5 * experts(even));
        QCOMPARE(2 * uneven.traffic[0].bytes, 3 * even.traffic[0].bytes);
        const auto inExperts = [](const Layer& layer) {
            Bytes bytes = 0;
            for (const SavedTensor& tensor : layer.saved)
                if (tensor.name.starts_with("experts."))
                    bytes += tensor.bytes();
            return bytes;
        };
        QVERIFY(inExperts(even) > 0);
        QCOMPARE(2 * inExperts(uneven), 3 * inExperts(even));
        QCOMPARE(uneven.parameters, even.parameters);
        // Of the whole model as many tokens as ever.
        const ModelShape shape = preset("mixtral-8x7b", {.expert = 8, .data = 8, .expertSpread = 1.5});
        QCOMPARE(wholeLayersOf(makeWorkload(shape, Optimizer::AdamW, "test")),
                 wholeLayersOf(makeWorkload(preset("mixtral-8x7b"), Optimizer::AdamW, "test")));
        QCOMPARE(textOf(shape.parallel), std::string("expert 8, up to 1.5 times the mean, data 8"));
        DesignRequest stated = request("1f1b", 4, 8, "mixtral-8x7b", shape.parallel);
        const Design design = makeDesign(stated);
        QVERIFY(designFromJson(designToJson(design), "test") == design);
        stated.parallel->expertSpread = 1;
        const Prediction uneven4 = predict(design), even4 = predict(makeDesign(stated));
        QVERIFY(uneven4.metrics.makespan > even4.metrics.makespan);
        QVERIFY(uneven4.metrics.devices[0].peakBytes > even4.metrics.devices[0].peakBytes);
        for (const Parallelism& wrong : {Parallelism{.expert = 8, .data = 8, .expertSpread = 0.9},
                                         Parallelism{.expert = 8, .data = 8, .expertSpread = 8.5},
                                         Parallelism{.data = 8, .expertSpread = 1.5}, Parallelism{.expertSpread = 2}}) {
            const Diagnostics faults = checkParallelism(preset("mixtral-8x7b", wrong));
            QVERIFY(!faults.empty());
            QCOMPARE(faults.front().where, std::string("model.parallel.expert_spread"));
        }
    }

    void membersShareTheWorkAndTheMatrices()
    {
        const Layer whole = layerOf("megatron-22b", {});
        const Layer member = layerOf("megatron-22b", {.tensor = 8, .context = 2});
        QCOMPARE(member.forwardFlops * 16, whole.forwardFlops);
        QCOMPARE(member.inputGradFlops * 16, whole.inputGradFlops);
        QCOMPARE(member.weightGradFlops * 16, whole.weightGradFlops);
        // Norms and the biases behind the second matrix of each pair are on all members.
        const std::int64_t h = 6144, onAll = 6 * h;
        QCOMPARE(8 * (member.parameters - onAll), whole.parameters - onAll);
        QCOMPARE(member.outputBytes * 2, whole.outputBytes);
        QCOMPARE(layerOf("megatron-22b", {.tensor = 8, .sequence = true}).outputBytes * 8, whole.outputBytes);
        // Grouped queries: 16 members have half a key head each, and hold it whole.
        const ModelShape llama = memberShape(preset("llama-3-8b", {.tensor = 16}));
        QCOMPARE(llama.heads, 2);
        QCOMPARE(llama.keyValueHeads, 1);
        // The model is as large as ever.
        const Workload cut = makeWorkload(preset("megatron-22b", {.tensor = 8}), Optimizer::AdamW, "test");
        QCOMPARE(parameterCount(cut), parameterCount(PresetLibrary().workload("megatron-22b")));
    }

    void expertsAreSharedOutOverCopies()
    {
        const Parallelism eight{.expert = 8, .data = 8};
        const Layer whole = layerOf("mixtral-8x7b", {}), member = layerOf("mixtral-8x7b", eight);
        const std::int64_t expert = 3ll * 4096 * 14336;
        QCOMPARE(whole.parameters - member.parameters, 7 * expert);
        QCOMPARE(member.expertParameters, expert);
        QCOMPARE(member.forwardFlops, whole.forwardFlops); // as many tokens come as go
        QCOMPARE(member.traffic.size(), std::size_t(1));
        const ModelShape shape = preset("mixtral-8x7b");
        QCOMPARE(member.traffic[0],
                 (GroupTraffic{GroupAxis::Expert, GroupExchange::AllToAll, shape.tokens() * 2 * 4096 * 2, 2, 2, 0}));
        QVERIFY(whole.traffic.empty());
    }

    void exchangesTakeTheirTimeOverTheLinkInside()
    {
        const Design alone = makeDesign(request("1f1b", 1, 4, "megatron-22b", {}));
        Design group = makeDesign(request("1f1b", 1, 4, "megatron-22b", {.tensor = 8}));
        const auto forward = [](const Design& design) { return double(design.costs.stages[0].forward); };
        // Two all-reduces of s b h 16-bit numbers for each of 48 layers, and one for the embedding.
        const double bytes = 2048.0 * 4 * 6144 * 2, once = 2 * (7 * 10'000 + bytes * 7 / 8 / 300e9 * 1e9);
        const auto traffic = 2 * double(alone.workload->layers[0].outputBytes) / 2039e9 * 1e9;
        QVERIFY(std::abs(forward(group) - ((forward(alone) - traffic) / 8 + traffic + 97 * once)) < 1000);
        const auto inputGrad = [](const Design& design) { return double(design.costs.stages[0].inputGrad); };
        QVERIFY(std::abs(inputGrad(group) - (inputGrad(alone) / 8 + 97 * once)) < 1000);
        // As much travels where the members split the tokens.
        group = makeDesign(request("1f1b", 1, 4, "megatron-22b", {.tensor = 8, .sequence = true}));
        QVERIFY(std::abs(inputGrad(group) - (inputGrad(alone) / 8 + (96 + 0.5) * once)) < 1000);
        // A measured all-reduce counts as it is.
        Cluster cluster = group.cluster;
        cluster.collectives[Collective::AllReduce] = {1'000'000, 0};
        const Design measured = withCluster(withParallelism(group, {.tensor = 8}), cluster);
        QVERIFY(std::abs(inputGrad(measured) - (inputGrad(alone) / 8 + 97e6)) < 1000);
    }

    void aRecomputeTakesAForwardsTimeOrItsAttentions()
    {
        const auto times = [](Recompute recompute) {
            return recomputing("zb-h1", recompute).costs.stages[1]; // twelve layers and nothing else
        };
        const StageCosts none = times(Recompute::None), selective = times(Recompute::BlockSelective),
                         full = times(Recompute::Block);
        QCOMPARE(full.recompute, none.forward);
        QCOMPARE(full.inputGrad, none.inputGrad);
        QCOMPARE(full.backward, none.backward);
        const double core = 12 * 4.0 * 2048 * 2048 * 4 * 6144 / (312e12 / 2) * 1e9;
        QVERIFY(std::abs(double(selective.recompute) - core) < 1000);
        QCOMPARE(selective.forward, none.forward);
        // Members exchange again what the forward exchanged.
        DesignRequest r = request("1f1b", 2, 4, "megatron-22b", {.tensor = 8});
        r.recompute = {Recompute::Block, {}};
        const StageCosts group = makeDesign(r).costs.stages[1];
        QCOMPARE(group.recompute, group.forward);
    }

    /// 1F1B keeps the inputs of its microbatches under way, and works on the activations of one.
    void fullRecomputationKeepsInputsAndWorksOnOneMicrobatch()
    {
        const auto peak = [](const char* family, Recompute recompute) {
            const Design design = recomputing(family, recompute);
            const StageCosts& stage = design.costs.stages[1];
            return double(predict(design).metrics.devices[1].peakBytes - stage.parameters - stage.gradients
                          - stage.optimizerState);
        };
        QVERIFY(peak("1f1b", Recompute::Block) < peak("1f1b", Recompute::BlockSelective));
        QVERIFY(peak("1f1b", Recompute::BlockSelective) < peak("1f1b", Recompute::None));
        const StageCosts stage = recomputing("1f1b", Recompute::Block).costs.stages[1];
        const double one =
            double(stage.recomputedUntilInputGrad + stage.recomputedUntilWeightGrad + stage.workspaceBackward);
        const double sbh = 2048.0 * 4 * 6144;
        // Inputs of microbatches under way, and outputs and gradients on theirs, each of 2sbh.
        const double more = (peak("1f1b", Recompute::Block) - one) / (2 * sbh);
        QCOMPARE(more, 9.0);
    }

    void degreesThatDoNotFitAreNamed()
    {
        QVERIFY(faultOf("megatron-22b", {.tensor = 3}).find("64 heads cannot be shared out over 3")
                != std::string::npos);
        QVERIFY(faultOf("megatron-22b", {.sequence = true}).find("model.parallel.sequence") != std::string::npos);
        QVERIFY(faultOf("megatron-22b", {.expert = 2, .data = 2}).find("no experts") != std::string::npos);
        QVERIFY(faultOf("mixtral-8x7b", {.expert = 8}).find("data-parallel copies") != std::string::npos);
        QVERIFY(faultOf("mixtral-8x7b", {.expert = 3, .data = 3}).find("8 experts") != std::string::npos);
        QVERIFY(faultOf("vit-l-16", {.context = 2}).find("model.parallel.context") != std::string::npos);
        QVERIFY(faultOf("megatron-22b", {.context = 2048, .data = 65536}).find("more than 1000000 devices")
                != std::string::npos);
        QVERIFY(faultOf("byte-mlp", {.tensor = 2}).find("classifier") != std::string::npos);
        QVERIFY(faultOf("megatron-22b", {.tensor = 8, .sequence = true, .context = 2}).empty());
        QVERIFY_THROWS_EXCEPTION(Error, makeDesign(request("seq1f1b", 2, 4, "megatron-22b", {.context = 2})));
        DesignRequest bare = test::requestFor("1f1b", 2, 4);
        bare.parallel = Parallelism{.tensor = 2};
        QVERIFY_THROWS_EXCEPTION(Error, makeDesign(bare)); // times that nobody knows anything of
        DesignRequest shared = request("1f1b", 2, 4, "byte-gpt", {.tensor = 2});
        shared.cluster = "host-mixed"; // its devices are groups already
        QVERIFY_THROWS_EXCEPTION(Error, makeDesign(shared));
    }

    void designsCarryTheirDegrees()
    {
        const Parallelism parallel{.tensor = 4, .sequence = true, .expert = 2, .data = 6};
        const Design design = makeDesign(request("1f1b", 2, 4, "mixtral-8x7b", parallel));
        const Design again = designFromJson(designToJson(design), "test");
        QCOMPARE(again, design);
        QCOMPARE(again.workload->shape.parallel, parallel);
        QVERIFY(!hasErrors(checkDesign(makeDesign(request("1f1b", 8, 8, "megatron-22b", {.tensor = 8})))));
        QVERIFY(design.costs.source.ends_with("tensor 4 with sequence, expert 2, data 6"));
        // Other families keep them, and they can be changed.
        const Design other = withFamily(design, *findFamily("zb-h1"));
        QCOMPARE(other.workload->shape.parallel, parallel);
        QCOMPARE(withParallelism(withParallelism(design, {}), parallel), design);
        QVERIFY(fullest(design) < fullest(withParallelism(design, {})));
        QVERIFY(!whyNotRunnable(design.workload->shape).empty());
        // Other tools' files have no place for them, and say so.
        const Design exported = makeDesign(request("1f1b", 2, 4, "llama-3-8b", {.tensor = 4}));
        const Diagnostics notes = pytorchCsv(exported).diagnostics;
        QVERIFY(std::any_of(notes.begin(), notes.end(),
                            [](const Diagnostic& note) { return note.what.find("tensor 4") != std::string::npos; }));
        Design measured = design;
        measured.costs.source = "measured: x.db";
        QVERIFY_THROWS_EXCEPTION(Error, withParallelism(measured, {}));
    }

    /// DualPipe's pairs are then as long as their parts take, and nothing is assumed.
    void tokensSentToExpertsArePartsOfTheirBlocks()
    {
        const Parallelism experts{.expert = 8, .data = 8};
        const Design design = makeDesign(request("dualpipe-v", 4, 12, "mixtral-8x7b", experts));
        const Design alone = makeDesign(request("dualpipe-v", 4, 12, "mixtral-8x7b", {}));
        QVERIFY(!alone.costs.hasParts());
        QVERIFY(!hasErrors(checkDesign(design)));
        const auto namesOf = [](std::span<const BlockPart> parts) {
            std::string names;
            for (const BlockPart& part : parts.first(std::min<std::size_t>(parts.size(), 6)))
                names += part.name + (part.awaited ? ", " : "*, ");
            return names;
        };
        QCOMPARE(namesOf(design.costs.parts(Op::F, 1)), "attention, dispatch, experts, combine, attention, dispatch, ");
        QCOMPARE(namesOf(design.costs.parts(Op::B, 1)),
                 "combine, experts, experts' weights*, dispatch, attention, attention's weights*, ");
        std::size_t first = 0; // of the stage's layers
        for (std::size_t s = 0; s < design.costs.stages.size(); ++s) {
            const StageCosts &stage = design.costs.stages[s], &before = alone.costs.stages[s];
            // Tokens that are sent are sorted by device too, and so twice.
            const std::span layers(&design.workload->layers[first], std::size_t(design.layersPerStage[s]));
            first += layers.size();
            const auto sortedMore = [&](MovedBytes Movements::*pass) {
                double bytes = 0;
                for (const Layer& layer : layers)
                    bytes += (layer.moved[std::size_t(Movement::Permutation)].*pass).bytes / 2;
                return Nanoseconds(bytes / design.cluster.devices.front().memoryBandwidth * 1e9);
            };
            for (const Op op : {Op::F, Op::B, Op::I}) {
                Nanoseconds communication = sortedMore(op == Op::F ? &Movements::forward : &Movements::inputGrad);
                for (const BlockPart& part : stage.parts[indexOf(op)])
                    communication += part.stream == PartStream::Communication ? part.time : 0;
                QCOMPARE(sumOf(stage.parts[indexOf(op)]), stage.*timeField(op));
                QVERIFY(std::abs(communication - (stage.*timeField(op) - before.*timeField(op))) < 100);
            }
            QCOMPARE(sumOf(stage.parts[indexOf(Op::W)]), stage.weightGrad);
        }
        QVERIFY(pairLengthsText(design.schedule, design.costs).find("assumed") == std::string::npos);
        Design assumed = design;
        for (StageCosts& stage : assumed.costs.stages)
            stage.parts = {};
        QVERIFY(predict(design).metrics.makespan < predict(assumed).metrics.makespan);

        DesignRequest r = request("dualpipe-v", 4, 12, "mixtral-8x7b", experts);
        r.overlapFactor = 0.8;
        const Design stated = makeDesign(r);
        QVERIFY(!stated.costs.hasParts());
        // Who states it keeps it, whatever else of the design changes.
        QVERIFY(!withParallelism(stated, {.expert = 4, .data = 4}).costs.hasParts());
        QCOMPARE(withParallelism(stated, {.expert = 4, .data = 4}).costs.overlapFactor, 0.8);
    }

    void throughputIsOfAllCopies()
    {
        const Design one = makeDesign(request("1f1b", 2, 4, "megatron-22b", {}));
        const Design many = makeDesign(request("1f1b", 2, 4, "megatron-22b", {.tensor = 4, .data = 3}));
        QCOMPARE(tokensPerSecond(many, 1'000'000'000), 3 * tokensPerSecond(one, 1'000'000'000));
        QCOMPARE(modelFlops(many), 3 * modelFlops(one));
        QVERIFY(std::abs(4 * modelFlopsUtilization(many, 1'000'000'000) / modelFlopsUtilization(one, 1'000'000'000) - 1)
                < 1e-12);
        // Recomputing is no work of the model.
        QCOMPARE(modelFlops(withRecompute(one, {Recompute::Block, Recompute::Block})), modelFlops(one));
    }
};

PIPEWRIGHT_TEST(ParallelismTest, NoApplication)
#include "tst_parallelism.moc"
