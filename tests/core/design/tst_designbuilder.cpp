// SPDX-License-Identifier: GPL-3.0-or-later
// Designs made from the options of the command line: defaults, given times and bytes, presets, and the checks
// of a design.
#include "core/design/designbuilder.h"
#include "core/design/redesign.h"
#include "core/model/transformer.h"
#include "core/predict/designcheck.h"
#include "core/predict/predict.h"
#include "makers/designs.h"
#include "testmain.h"

#include <QTest>

using namespace pipewright;

class TestDesignBuilder : public QObject {
    Q_OBJECT

private:
    static DesignRequest request(const char* family = "1f1b", int devices = 4, int microbatches = 8)
    {
        DesignRequest result = test::requestFor(family, devices, microbatches);
        return result;
    }

    static std::string errorOf(const DesignRequest& request)
    {
        try {
            makeDesign(request);
        } catch (const Error& error) {
            return error.what();
        }
        return {};
    }

private Q_SLOTS:
    void nothingGivenIsUnitTimesAndARunnableModel()
    {
        const Design design = makeDesign(request());
        QVERIFY(design.workload && isRunnable(design.workload->shape));
        QCOMPARE(design.costs.source, std::string("given"));
        for (const StageCosts& stage : design.costs.stages) {
            QCOMPARE(stage.forward, Nanoseconds{1'000'000});
            QCOMPARE(stage.backward, Nanoseconds{2'000'000});
            QCOMPARE(stage.update, Nanoseconds{0});
            QVERIFY(stage.savedUntilInputGrad + stage.savedUntilWeightGrad > 0);
        }
        QCOMPARE(design.costs.reduce, Nanoseconds{0});
        QCOMPARE(design.costs.link.transferTime(1 << 30), Nanoseconds{0});
        QVERIFY(checkDesign(design).empty());
    }

    void aFamilyThatSearchesKeepsItsLimitInTheModelsOwnBytes()
    {
        DesignRequest r = request("zb-auto", 8, 32);
        r.model = "llama-3-8b";
        r.cluster = "h200-node";
        r.memoryLimit = 1.25;
        const auto check = [&](const Design& design) {
            const Metrics metrics = predict(design).metrics;
            for (int d = 0; d < 8; ++d) {
                const StageCosts& stage = design.costs.stages[d];
                const Bytes saved = stage.savedUntilInputGrad + stage.savedUntilWeightGrad,
                            kept = stage.savedUntilWeightGrad + stage.savedFromInputGrad;
                if (kept >= saved) // I gives nothing back
                    QVERIFY2(metrics.devices[d].peakActivations <= 10, qPrintable(QString::number(d)));
            }
            QVERIFY(metrics.devices[7].peakBytes < Bytes{100} << 30); // 118 GiB by the papers' ratio
        };
        check(makeDesign(r));
        DesignRequest base = request("1f1b", 8, 32); // the same by changing the family, and with measured times
        base.model = r.model;
        base.cluster = r.cluster;
        Design other = makeDesign(base);
        check(withFamily(other, *findFamily("zb-auto"), {std::nullopt, 1.25}));
        other.costs.source = "measured: run.db";
        DesignRequest carried = request("zb-auto", 8, 32);
        carried.memoryLimit = 1.25;
        carried.costsFrom = other;
        check(makeDesign(carried));
    }

    void moreDevicesThanAClusterHasAreRefused()
    {
        DesignRequest r = request("1f1b", 16, 16);
        r.model = "llama-3-8b";
        r.cluster = "h200-node";
        QVERIFY(errorOf(r).find("h200-node has 8 devices, and 16 are needed") != std::string::npos);
        r.devices = 4;
        r.parallel = Parallelism{.tensor = 4};
        QVERIFY(errorOf(r).find("16 are needed: 4 for each of 4") != std::string::npos);
        r.parallel = Parallelism{.data = 3}; // copies of the pipeline count, as on nodes
        QVERIFY(errorOf(r).find("12 are needed") != std::string::npos);
        r.parallel = Parallelism{.tensor = 2};
        QCOMPARE(makeDesign(r).cluster.devices.size(), std::size_t{4});
        r.parallel.reset();
        r.devices = 16;
        for (const char* threads : {"host", "host-pair"}) { // of which there are as many as are asked for
            r.cluster = threads;
            QCOMPARE(makeDesign(r).cluster.devices.size(), std::size_t{16});
        }
        r.cluster.reset(); // nodes are taken where one has too few
        QVERIFY(makeDesign(r).cluster.nodes.devices == 8);
        r.device = "h200-sxm";
        QCOMPARE(makeDesign(r).cluster.name, std::string("h200-nodes"));
    }

    void theModelGrowsWithTheStages()
    {
        const Design design = makeDesign(request("1f1b", 16, 4));
        QCOMPARE(design.workload->shape.layers, 16);
        QCOMPARE(design.layersPerStage.size(), std::size_t{16});
    }

    void givenBytesLeaveNoModel()
    {
        DesignRequest r = request("interleaved-1f1b");
        r.chunks = 2;
        r.saved = 1000;
        const Design design = makeDesign(r);
        QVERIFY(!design.workload);
        QCOMPARE(design.costs.stages[0].savedUntilWeightGrad, Bytes{500}); // a chunk's half, all of it until W
        QCOMPARE(design.costs.stages[0].savedUntilInputGrad, Bytes{0});
        QCOMPARE(design.costs.stages[0].parameters, Bytes{0});
        r.savedForWeightGrad = 400;
        QCOMPARE(makeDesign(r).costs.stages[0].savedUntilWeightGrad, Bytes{200});
        QCOMPARE(makeDesign(r).costs.stages[0].savedUntilInputGrad, Bytes{300});
        r.model = "byte-gpt";
        QVERIFY(errorOf(r).find("--saved") != std::string::npos);
    }

    void timesPerChunkAreNotSplit()
    {
        DesignRequest r = request("interleaved-1f1b");
        r.chunks = 2;
        r.forward = 3'000'000;
        QCOMPARE(makeDesign(r).costs.stages[0].forward, Nanoseconds{1'500'000});
        r.perChunk = true;
        QCOMPARE(makeDesign(r).costs.stages[0].forward, Nanoseconds{3'000'000});
    }

    void aPassWithoutATimeBesideGivenOnesIsNeverTakenFromTheFormula()
    {
        for (const bool forward : {true, false}) {
            DesignRequest r = request();
            r.model = "llama-3-8b";
            (forward ? r.forward : r.weightGrad) = 5'000'000;
            QVERIFY(errorOf(r).find("--forward, --input-grad, --weight-grad") != std::string::npos);
            r.inputGrad = 4'000'000;
            QVERIFY(errorOf(r).find("two are given") != std::string::npos);
            r.model.reset(); // without a formula the others take their usual time
            QCOMPARE(makeDesign(r).costs.stages[1].inputGrad, Nanoseconds{4'000'000});
        }
    }

    void givenTimesWinOverTheFormula()
    {
        DesignRequest r = request();
        r.model = "llama-3-8b";
        const Design formula = makeDesign(r);
        QVERIFY(formula.costs.stages[1].forward > 0 && formula.costs.stages[1].update > 0);
        r.transfer = 7;
        r.forward = 3;
        r.inputGrad = 4;
        r.weightGrad = 5;
        const Design mixed = makeDesign(r);
        QCOMPARE(mixed.costs.stages[1].forward, Nanoseconds{3});
        QCOMPARE(mixed.costs.stages[1].weightGrad, Nanoseconds{5});
        QCOMPARE(mixed.costs.stages[1].backward, Nanoseconds{9});
        QCOMPARE(mixed.costs.stages[1].update, formula.costs.stages[1].update);
        QCOMPARE(mixed.costs.linkBetween(0, 1).transferTime(1 << 30), Nanoseconds{7});
        QVERIFY(mixed.costs.source.find("times given") != std::string::npos);
        QCOMPARE(mixed.cluster.devices.size(), std::size_t{4});
    }

    void aPartitionCountsTransformerLayersOrAll()
    {
        DesignRequest r = request("1f1b", 3, 4);
        r.layersPerStage = {3, 3, 2};
        QCOMPARE(makeDesign(r).layersPerStage, (std::vector<int>{4, 3, 3}));
        r.layersPerStage = {4, 4, 2};
        QCOMPARE(makeDesign(r).layersPerStage, (std::vector<int>{4, 4, 2}));
        r.layersPerStage = {3, 3, 3};
        QVERIFY(errorOf(r).find("--layers-per-stage") != std::string::npos);
        r.layersPerStage = {5, 5};
        QVERIFY(errorOf(r).find("2 numbers for 3 stages") != std::string::npos);
    }

    /// As in arXiv 2405.15362: 30 layers, embedding and head on 16 devices with two stages each.
    void embeddingAndHeadCanStandAlone()
    {
        DesignRequest r = request("v-half", 16, 32);
        r.model = "gpt-9.6b";
        const Design even = makeDesign(r);
        QCOMPARE(even.layersPerStage, std::vector<int>(32, 1));
        r.layersPerStage.assign(32, 1);
        const Design stated = makeDesign(r);
        QCOMPARE(stated.costs, even.costs);
        QVERIFY(checkDesign(stated).empty());
        // The embedding has no matrix products, and hands on as much as any layer; the head hands on nothing.
        QVERIFY(stated.costs.stages[0].forward < stated.costs.stages[1].forward / 10);
        QCOMPARE(stated.costs.stages[0].output, stated.costs.stages[1].output);
        QCOMPARE(stated.costs.stages[31].output, Bytes{0});
        r.layersPerStage.push_back(1);
        QVERIFY(errorOf(r).find("33 numbers for 32 stages") != std::string::npos);
        r = request("1f1b", 3, 4);
        r.model = "byte-gpt";
        r.layersPerStage = {1, 8, 1};
        QCOMPARE(makeDesign(r).layersPerStage, (std::vector<int>{1, 8, 1}));
    }

    void aDeviceStandsInTheClusterMadeOfIt()
    {
        DesignRequest r = request();
        r.device = "h100-sxm";
        const Design design = makeDesign(r);
        QCOMPARE(design.cluster.devices.size(), std::size_t{4});
        QVERIFY(design.cluster.devices[0].memory > 0);
        QVERIFY(design.cluster.link.bandwidth > 0);
        r.cluster = "h200-node";
        QVERIFY(errorOf(r).find("--device") != std::string::npos);
    }

    void aCheckNamesTheDeviceWhoseMemoryIsShort()
    {
        DesignRequest r = request();
        r.saved = 1 << 20;
        Design design = makeDesign(r);
        design.cluster.devices[0].memory = 4 << 20; // exactly what four microbatches need
        design.cluster.devices[1].memory = 2 << 20; // one microbatch less than its three
        const Diagnostics diagnostics = checkDesign(design);
        QCOMPARE(diagnostics.size(), std::size_t{1});
        QCOMPARE(diagnostics[0].where, std::string("device 1"));
        QVERIFY(diagnostics[0].what.find("3 MiB") != std::string::npos);
    }

    void aCheckOfAnUnfinishedScheduleSaysWhatIsMissing()
    {
        Design design = makeDesign(request());
        design.schedule.order[2].pop_back();
        QVERIFY(hasErrors(checkDesign(design)));
    }
};

PIPEWRIGHT_TEST(TestDesignBuilder, QCoreApplication)
#include "tst_designbuilder.moc"
