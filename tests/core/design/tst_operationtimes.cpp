// SPDX-License-Identifier: GPL-3.0-or-later
// The times of a layer by rates: which product each pass looks up, what an attention counts as, and what is moved.
#include "core/design/clusterlinks.h"
#include "core/design/designbuilder.h"
#include "core/design/operationtimes.h"
#include "core/design/ratedwork.h"
#include "core/design/rateorigins.h"
#include "core/design/redesign.h"
#include "core/files/designfile.h"
#include "core/model/transformer.h"
#include "core/presets/presets.h"
#include "makers/designs.h"
#include "testmain.h"

#include <QTest>

#include <algorithm>
#include <cmath>

using namespace pipewright;

namespace {

RateTable tableOf(RatedOperation operation, const char* layout, const char* types, double share)
{
    RateTable table;
    table.operation = operation;
    table.layout = layout;
    table.types = types;
    table.peak = 1e12;
    table.shapes = {{{}, share}};
    return table;
}

DeviceSpec deviceWith(std::vector<RateTable> tables)
{
    DeviceSpec device{"made", 0, 1e12, 1e9, 0.5};
    OperationRates rates;
    rates.name = "made";
    rates.tables = std::move(tables);
    device.rates = std::make_shared<const OperationRates>(std::move(rates));
    return device;
}

bool near(double a, double b)
{
    return std::abs(a - b) <= 1e-9 * std::abs(b);
}

Design onB200(const char* model, const Parallelism& parallel = {})
{
    DesignRequest request = test::requestFor("1f1b", 4, 8);
    request.model = model;
    request.cluster = "b200-nodes";
    request.parallel = parallel;
    return makeDesign(request);
}

} // namespace

class OperationTimesTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void everyPassHasTheLayoutAndTypesOfItsProduct()
    {
        const DeviceSpec device = deviceWith({tableOf(RatedOperation::Product, "TN", "bf16", 0.5),
                                              tableOf(RatedOperation::Product, "NN", "bf16", 0.25),
                                              tableOf(RatedOperation::Product, "NT", "bf16+fp32", 0.125)});
        Layer layer;
        layer.products = {{10, 20, 30, 0, true, true}, {10, 20, 30, 0, false, true}};
        OperationTimes times(device, NumberTypes{DataType::Bf16});
        const ComputedLayer& computed = times.of(layer);
        const double flops = 2.0 * 10 * 20 * 30;
        QVERIFY(near(computed.seconds.forward, 2 * flops / 0.5e12));
        QVERIFY(near(computed.seconds.inputGrad, flops / 0.25e12));
        QVERIFY(near(computed.seconds.weightGrad, 2 * flops / 0.125e12));
        // Sums in bf16 were not measured: the efficiency counts, and it is said.
        OperationTimes narrow(device, NumberTypes{DataType::Bf16, ProductType::Own, 2});
        QVERIFY(near(narrow.of(layer).seconds.weightGrad, 2 * flops / 0.5e12));
        QVERIFY(near(narrow.of(layer).origins.weightGrad[std::size_t(RateOrigin::Formula)], 2 * flops / 0.5e12));
        QCOMPARE(computed.origins.weightGrad[std::size_t(RateOrigin::Formula)], 0.0);
    }

    void everyPassLooksUpItsOwnShape()
    {
        const auto shaped = [](const char* layout, const char* types, RateDimensions dims) {
            RateTable table = tableOf(RatedOperation::Product, layout, types, 0.5);
            table.used = {0, 1, 2};
            table.shapes = {{dims, 0.5}};
            return table;
        };
        const DeviceSpec device = deviceWith({shaped("TN", "bf16", {10, 20, 30}), shaped("NN", "bf16", {10, 30, 20}),
                                              shaped("NT", "bf16+fp32", {30, 10, 20})});
        Layer layer;
        layer.products = {{10, 20, 30, 0, true, true}};
        OperationTimes times(device, NumberTypes{DataType::Bf16});
        const PassOrigins& origins = times.of(layer).origins;
        for (const OriginSeconds& pass : {origins.forward, origins.inputGrad, origins.weightGrad})
            QVERIFY(pass[std::size_t(RateOrigin::Measured)] > 0);
    }

    void theBackwardOfAnAttentionHasFiveProductsAndCausalMasksHalfTheKeys()
    {
        const DeviceSpec device = deviceWith({tableOf(RatedOperation::AttentionForward, "causal", "bf16", 0.5),
                                              tableOf(RatedOperation::AttentionBackward, "causal", "bf16", 0.25)});
        Layer layer;
        layer.attentions = {{1, 8, 2, 16, 12, 64, 64, 0, true}};
        OperationTimes times(device, NumberTypes{DataType::Bf16});
        const double half = 2.0 * 8 * 64 * 32 * (16 + 12);
        QVERIFY(near(times.of(layer).seconds.forward, half / 0.5e12));
        QVERIFY(near(times.of(layer).attentionCore, half / 0.5e12));
        QVERIFY(near(times.of(layer).seconds.inputGrad, 2.5 * half / 0.25e12));
        layer.attentions = {{1, 8, 2, 16, 12, 64, 64, 16, true}}; // the first 16 queries meet fewer keys
        QVERIFY(near(times.of(layer).seconds.forward, half / 32 * (16 - 2) / 0.5e12));
        layer.attentions = {{1, 8, 2, 16, 12, 64, 64, 0, false}};
        QVERIFY(near(times.of(layer).origins.forward[std::size_t(RateOrigin::Formula)], 2 * half / 0.5e12));
    }

    void withoutRatesAttentionCountsAsItIsComputedToo()
    {
        const DeviceSpec device{"made", 0, 1e12, 1e9, 0.5};
        ModelShape shape = PresetLibrary().model("llama-3-8b");
        const auto attention = [&] { // the only work of I that W has none of
            const Layer layer = layersOf(shape)[1];
            OperationTimes times(device, NumberTypes{DataType::Bf16});
            const ComputedLayer& computed = times.of(layer);
            return std::pair(computed.attentionCore, computed.seconds.inputGrad - computed.seconds.weightGrad);
        };
        const double square = 4.0 * double(shape.sequence * shape.sequence * shape.hidden) / 0.5e12;
        const auto [forward, backward] = attention();
        QVERIFY(near(forward, square / 2));
        QVERIFY(std::abs(backward / (2.5 * square / 2) - 1) < 1e-9);
        shape.attention = AttentionMemory::Stored; // products of whole matrices, and nothing is made again
        QVERIFY(near(attention().first, square));
        QVERIFY(std::abs(attention().second / (2 * square) - 1) < 1e-9);
    }

    void layersWithWindowsHaveLessWorkThanThoseWithout()
    {
        ModelShape shape = PresetLibrary().model("llama-3-8b");
        shape.window = 512;
        shape.fullAttentionEvery = 2;
        const std::vector<Layer> layers = layersOf(shape);
        QVERIFY(layers[1].forwardFlops != layers[2].forwardFlops);
        QCOMPARE(layers[1].forwardFlops, layers[3].forwardFlops);
        QVERIFY(near(std::min(layers[1].attentions[0].keysMet(), layers[2].attentions[0].keysMet()),
                     512 - 512.0 * 512 / (2 * double(shape.sequence))));
    }

    void everyShapeOfADesignIsListedOnce()
    {
        const Design design = onB200("llama-3-70b", {8, true});
        const std::vector<RatedShape> shapes = ratedShapesOf(design);
        QVERIFY(std::is_sorted(shapes.begin(), shapes.end())
                && std::adjacent_find(shapes.begin(), shapes.end()) == shapes.end());
        const auto count = [&](RatedOperation operation) {
            return std::count_if(shapes.begin(), shapes.end(),
                                 [&](const RatedShape& shape) { return shape.operation == operation; });
        };
        QCOMPARE(count(RatedOperation::Product), 3 * 5); // of attention and MLP two each, and the head, in three passes
        QCOMPARE(count(RatedOperation::AttentionForward), 1);
        QCOMPARE(count(RatedOperation::AttentionBackward), 1);
    }

    void groupedProductsHaveTheRowsOfOneExpert()
    {
        RateTable table = tableOf(RatedOperation::GroupedProduct, "TN", "bf16", 0.5);
        table.used = {0, 1, 2, 3};
        table.shapes = {{{4, 100, 20, 30}, 0.5}};
        const DeviceSpec device = deviceWith({table});
        Layer layer;
        layer.products = {{400, 20, 30, 4, false, false}};
        OperationTimes times(device, NumberTypes{DataType::Bf16});
        QVERIFY(near(times.of(layer).origins.forward[std::size_t(RateOrigin::Measured)], 2.0 * 400 * 20 * 30 / 0.5e12));
    }

    void everyKernelPaysItsLatencyOnce()
    {
        RateTable table = tableOf(RatedOperation::Memory, "elementwise", "", 0.5);
        table.shapes = {{{}, 0.5, 1e-6}};
        const DeviceSpec device = deviceWith({table});
        Layer layer;
        layer.moved[std::size_t(Movement::Elementwise)].forward = {3000, 3};
        layer.moved[std::size_t(Movement::Loss)].inputGrad = {5000, 1};
        OperationTimes times(device, NumberTypes{DataType::Bf16});
        QVERIFY(near(times.of(layer).seconds.forward, 3e-6 + 3000 / (0.5 * device.memoryBandwidth)));
        QVERIFY(near(times.of(layer).seconds.inputGrad, 5000 / 1e9)); // by the data sheet
        QVERIFY(near(times.memoryRate(), 0.5 * device.memoryBandwidth));
    }

    /// By hand, in rows of the model's width and of the MLP's: two norms read and write, rotated queries and keys too,
    /// two sums read two and write one, and the gated activation is one kernel that reads two and writes one.
    void aLayerMovesWhatItsKernelsReadAndWrite()
    {
        const Design design = onB200("llama-3-70b");
        const ModelShape& shape = design.workload->shape;
        const auto rows = double(shape.tokens()) * 2; // bytes of one column
        const auto h = double(shape.hidden), f = double(shape.ffn), kv = double(shape.keyValueHeads * shape.headSize);
        const Movements& moved = design.workload->layers[1].moved[std::size_t(Movement::Elementwise)];
        QVERIFY(near(moved.forward.bytes, rows * (2 * 2 * h + 2 * (h + kv) + 2 * 3 * h + 3 * f)));
        QCOMPARE(moved.forward.kernels, 2 + 2 + 2 + 1);
        // Norms read two and write one, the activation reads three and writes two, and two streams are summed.
        QVERIFY(near(moved.inputGrad.bytes, rows * (2 * 3 * h + 2 * (h + kv) + 5 * f + 2 * 3 * h)));
        QCOMPARE(moved.inputGrad.kernels, 2 + 2 + 1 + 2);
    }

    void expertParallelCopiesHaveFewerExpertsWithMoreRows()
    {
        const auto experts = [](const Design& design) {
            for (const ProductSize& size : design.workload->layers[3].products)
                if (size.experts > 0)
                    return size;
            return ProductSize{};
        };
        const ProductSize alone = experts(onB200("deepseek-v2")),
                          shared = experts(onB200("deepseek-v2", {.expert = 8, .data = 8}));
        QCOMPARE(alone.experts, std::int64_t{160});
        QCOMPARE(shared.experts, std::int64_t{20});
        QCOMPARE(shared.rows, alone.rows);
    }

    void aDesignNamesItsRatesAndFindsThemAgain()
    {
        const Design design = onB200("llama-3-70b", {8, true});
        QVERIFY(design.cluster.devices.front().rates);
        QVERIFY(QString::fromStdString(design.costs.source).contains("by the rates b200-sxm"));
        const std::string text = designToJson(design);
        QVERIFY(text.find("\"rates\": \"b200-sxm\"") != std::string::npos);
        const Design again = designFromJson(text, "design");
        QVERIFY(again == design);
        QVERIFY(again.cluster.devices[0].rates == again.cluster.devices[1].rates); // read once
        std::string other = text;
        other.replace(other.find("b200-sxm\""), 8, "b300-sxm");
        try {
            (void)designFromJson(other, "design");
            QFAIL("accepted");
        } catch (const Error& error) {
            const QString said = error.what();
            QVERIFY2(said.contains("no preset is named \"b300-sxm\"") && said.contains("leave \"rates\" out"),
                     qPrintable(said));
        }
    }

    void collectivesAndSendsHaveTheirShareOfTheLinkAsItIs()
    {
        RateTable gather = tableOf(RatedOperation::AllGather, "", "", 0.5), send = gather;
        gather.link = send.link = "wire";
        gather.shapes = {{{}, 0.5, 3e-6}};
        send.operation = RatedOperation::Send;
        Cluster cluster;
        cluster.devices = {deviceWith({gather, send})};
        cluster.link = {"wire", 1000, 1e9};
        Layer layer;
        layer.traffic = {{GroupAxis::Tensor, GroupExchange::GatherOrScatter, 4'000'000, 2, 0, 0},
                         {GroupAxis::Tensor, GroupExchange::AllReduce, 4'000'000, 0, 1, 0}};
        const Parallelism parallel{.tensor = 4};
        const MemberTimes members(cluster, parallel);
        QVERIFY(near(members.exchanges(layer).forward, 2 * (3e-6 + 3e6 / 0.5e9)));
        QVERIFY(near(members.exchanges(layer).inputGrad, 2 * (3 * 1e-6 + 3e6 / 1e9))); // as a ring, by the data sheet
        QVERIFY(near(members.origins(layer).inputGrad[std::size_t(RateOrigin::Formula)],
                     members.exchanges(layer).inputGrad));
        QCOMPARE(linkCosts(cluster).bytesPerSecond, 0.5e9);
        QCOMPARE(linkCosts(cluster).latency, Nanoseconds{0});
        cluster.link.name = "another";
        QCOMPARE(linkCosts(cluster).bytesPerSecond, 1e9);
    }

    void whereTheTimesComeFromIsSaid()
    {
        const Design design = onB200("llama-3-70b", {8, true});
        const std::vector<PassOrigins> stages = rateOrigins(design);
        QCOMPARE(stages.size(), design.costs.stages.size());
        for (std::size_t s = 0; s < stages.size(); ++s) { // all of it, exchanges with members included
            double forward = 0;
            for (const double seconds : stages[s].forward)
                forward += seconds;
            QVERIFY(std::abs(forward * 1e9 - double(design.costs.stages[s].forward)) < 2);
        }
        QVERIFY(QString::fromStdString(rateOriginsText(design)).contains("of shapes that were measured"));
        DesignRequest request = test::requestFor("1f1b", 4, 8);
        request.model = "llama-3-70b";
        request.cluster = "b200-nodes";
        request.efficiency = 0.4; // in place of the rates
        QVERIFY(rateOrigins(makeDesign(request)).empty());
        QVERIFY(rateOriginsText(makeDesign(request)).empty());
    }
};

PIPEWRIGHT_TEST(OperationTimesTest, NoApplication)
#include "tst_operationtimes.moc"
