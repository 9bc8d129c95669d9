// SPDX-License-Identifier: GPL-3.0-or-later
// A crossed memory limit is explained: the device, the moment, the block, and what fills it.
#include "core/design/designbuilder.h"
#include "core/design/stageplans.h"
#include "core/families/family.h"
#include "core/predict/designcheck.h"
#include "core/predict/predict.h"
#include "makers/designs.h"
#include "makers/groups.h"
#include "testmain.h"

#include <QTest>

#include <algorithm>
#include <map>

using namespace pipewright;

class TestDesignCheck : public QObject {
    Q_OBJECT

private:
    static constexpr Bytes mib = 1 << 20;

    /// Two stages, two microbatches, GPipe: F F B B on both.
    static Design twoStages()
    {
        Design design;
        design.schedule.family = "gpipe";
        design.schedule.microbatches = 2;
        design.schedule.deviceOfStage = {0, 1};
        for (int d = 0; d < 2; ++d)
            design.schedule.order.push_back({{Op::F, d, 0}, {Op::F, d, 1}, {Op::B, d, 0}, {Op::B, d, 1}});
        StageCosts costs;
        costs.savedUntilInputGrad = 3 * mib;
        costs.savedUntilWeightGrad = 2 * mib;
        costs.savedFromInputGrad = mib;
        costs.output = mib / 2;
        costs.workspaceForward = 2 * mib;
        costs.workspaceBackward = 7 * mib;
        costs.parameters = 10 * mib;
        costs.gradients = 4 * mib;
        costs.optimizerState = 6 * mib;
        design.costs.stages.assign(2, costs);
        design.cluster.devices.assign(2, DeviceSpec{"small card", 0, 0, 0, 0.5});
        return design;
    }

private Q_SLOTS:
    void statesThatOneCopySharesOutAreNamed()
    {
        Design design = twoStages();
        QVERIFY(checkDesign(design).empty());
        design.schedule.zero.level = 1;
        const Diagnostics alone = checkDesign(design);
        QCOMPARE(alone.size(), std::size_t(1));
        QCOMPARE(alone.front().where, std::string("schedule.zero"));
        QVERIFY(!hasErrors(alone));
    }

    void aStatedOrderOfWhatIsNotThereIsNoted()
    {
        Design design = twoStages();
        design.schedule.transferOrder = {{*parseTransfer("F0.0 to 1"), *parseTransfer("F0.1 to 1")}};
        QVERIFY(checkDesign(design).empty());
        design.schedule.transferOrder.push_back({*parseTransfer("B0.1 to 0"), *parseTransfer("B1.1 to 0")});
        const Diagnostics notes = checkDesign(design);
        QCOMPARE(notes.size(), std::size_t(1));
        QVERIFY(notes.front().severity == Severity::Note);
        QCOMPARE(notes.front().where, std::string("schedule.transfer_order"));
        QCOMPARE(notes.front().what, std::string("B0.1 to 0 before B1.1 to 0 has no effect: there is no B0.1 to 0"));
    }

    void aMemberOfAGroupHasAMemoryOfItsOwn()
    {
        // With a plan that is stated: one that is searched keeps to the memory.
        Design design = withStrategy(test::groupDesign("1f1b", {{1e9, 5e8}, {1e9, 1e9}}, 4), sharding::Strategy::Even);
        QVERIFY(checkDesign(design).empty());
        auto group = std::make_shared<Cluster>(*design.cluster.devices[1].group);
        group->devices[1].memory = 1024;
        design.cluster.devices[1].group = group;
        const Diagnostics found = checkDesign(design);
        QVERIFY2(found.size() == 1, toString(found).c_str());
        QCOMPARE(found.front().where, std::string("device 3"));
        QVERIFY2(found.front().what.find("a group's member, needs") == 0, found.front().what.c_str());
    }

    /// A group's number for memory is its smallest member's, and its estimate is of the fullest one.
    void aGroupFitsWhereItsMembersDo()
    {
        Design design = withStrategy(test::groupDesign("1f1b", {{1e9, 5e8}, {1e9, 1e9}}, 4), sharding::Strategy::Even);
        design.cluster.devices[1].memory = 1024;
        std::vector<MemoryPeak> crossed;
        const Diagnostics found = checkDesign(design, &crossed);
        QVERIFY2(found.empty() && crossed.empty(), toString(found).c_str());
    }

    void whatIsAlikeOfSeveralDevicesIsSaidOnce()
    {
        Design design = twoStages();
        design.schedule.deviceOfStage = {0, 1, 2, 3, 4, 5, 6, 7};
        design.schedule.order.clear();
        for (int d = 0; d < 8; ++d)
            design.schedule.order.push_back({{Op::F, d, 0}, {Op::F, d, 1}, {Op::B, d, 0}, {Op::B, d, 1}});
        design.costs.stages.assign(8, design.costs.stages.front());
        design.cluster.devices.assign(8, design.cluster.devices.front());
        const Prediction prediction = predict(design);
        for (DeviceSpec& device : design.cluster.devices)
            device.memory = prediction.program.devices[1].peakBytes - 1;
        std::vector<MemoryPeak> crossed;
        const Diagnostics found = checkDesign(design, &crossed);
        std::map<Bytes, int> peaks;
        for (const MemoryPeak& peak : crossed)
            ++peaks[peak.peak];
        QCOMPARE(std::count_if(found.begin(), found.end(),
                               [](const Diagnostic& one) { return one.severity == Severity::Error; }),
                 std::ptrdiff_t(peaks.size()));
        QVERIFY(peaks[prediction.program.devices[1].peakBytes] >= 6);
        const auto several = std::find_if(found.begin(), found.end(), [](const Diagnostic& one) {
            return one.where.starts_with("devices ") && one.what.starts_with("each need ");
        });
        QVERIFY2(several != found.end(), toString(found).c_str());
        QVERIFY2(several->where.find("1-6") != std::string::npos, several->where.c_str());
    }

    void theMomentAndThePartsOfAPeakAreNamed()
    {
        Design design = twoStages();
        design.cluster.devices[1].memory = 30 * mib;
        std::vector<MemoryPeak> crossed;
        const Diagnostics diagnostics = checkDesign(design, &crossed);
        QCOMPARE(crossed.size(), std::size_t{1});
        const MemoryPeak& peak = crossed[0];
        // Device 1 starts B1.0 at 3 ms with both microbatches alive, which adds what I leaves for W, the
        // gradient to send, and the workspace; both received outputs are still there.
        QCOMPARE(peak.device, 1);
        QCOMPARE(peak.deviceName, std::string("small card"));
        QCOMPARE(peak.limit, 30 * mib);
        QCOMPARE(peak.during, std::string("B1.0"));
        QCOMPARE(peak.time, Nanoseconds{3'000'000});
        QCOMPARE(peak.persistent, 20 * mib);
        QCOMPARE(peak.saved, (std::vector<MemoryPeak::Saved>{{1, 2, 11 * mib}}));
        QCOMPARE(peak.workspace, 7 * mib);
        QCOMPARE(peak.made, mib / 2);
        QCOMPARE(peak.persistent + peak.savedBytes() + peak.received + peak.made + peak.weights + peak.workspace,
                 peak.peak);

        const auto error = std::find_if(diagnostics.begin(), diagnostics.end(),
                                        [](const Diagnostic& d) { return d.severity == Severity::Error; });
        QVERIFY(error != diagnostics.end());
        QCOMPARE(error->where, std::string("device 1"));
        for (const char* part :
             {"at 3 ms (B1.0)", "30 MiB of small card", "20 MiB all the time",
              "11 MiB of saved activations (stage 1: 11 MiB of 2 microbatches)", "7 MiB of workspace"})
            QVERIFY2(error->what.find(part) != std::string::npos, (error->what + " lacks " + part).c_str());
    }

    void aFullBackwardIsSparedWhatOnlyItsHalvesHold()
    {
        Design design = twoStages();
        const auto peak = [&design] { return predict(design).program.devices[1].peakBytes; };
        const Bytes before = peak();
        for (StageCosts& stage : design.costs.stages)
            stage.sparedByBackward = stage.savedFromInputGrad;
        QCOMPARE(peak(), before - mib);
        for (std::vector<Block>& order : design.schedule.order) // I and W in place of B: it is there again
            order = {order[0],
                     order[1],
                     {Op::I, order[0].stage, 0},
                     {Op::W, order[0].stage, 0},
                     {Op::I, order[0].stage, 1},
                     {Op::W, order[0].stage, 1}};
        const Bytes halves = peak();
        for (StageCosts& stage : design.costs.stages)
            stage.sparedByBackward = 0;
        QCOMPARE(peak(), halves);
    }

    void everyPeakIsTheSumOfItsParts()
    {
        for (const Family& family : families()) {
            DesignRequest request = test::requestFor(family.name, 4, 8);
            request.saved = 6 * mib;
            request.savedForWeightGrad = 2 * mib;
            Design design = makeDesign(request);
            for (StageCosts& stage : design.costs.stages) {
                stage.output = mib;
                stage.workspaceForward = 3 * mib;
                stage.workspaceInputGrad = mib;
                stage.workspaceWeightGrad = stage.workspaceBackward = 2 * mib;
                stage.savedFromInputGrad = mib;
                stage.parameters = 5 * mib;
            }
            const Prediction prediction = predict(design);
            for (int d = 0; d < 4; ++d) {
                const MemoryPeak peak = memoryPeak(prediction.program, prediction.timeline, d);
                QCOMPARE(peak.peak, prediction.program.devices[std::size_t(d)].peakBytes);
                QVERIFY2(peak.persistent + peak.savedBytes() + peak.received + peak.made + peak.weights + peak.workspace
                             == peak.peak,
                         std::string(family.name).c_str());
                const std::vector<MemorySample>& curve = prediction.timeline.memory[std::size_t(d)];
                QVERIFY(std::find(curve.begin(), curve.end(), MemorySample{peak.time, peak.peak}) != curve.end());
            }
        }
    }

    void theRemedyFitsWhatFillsTheDevice()
    {
        Design design = twoStages();
        const auto hint = [&design](Bytes limit) {
            design.cluster.devices[0].memory = limit;
            for (const Diagnostic& diagnostic : checkDesign(design))
                if (diagnostic.severity == Severity::Error)
                    return diagnostic.hint;
            return std::string();
        };
        QVERIFY(hint(15 * mib).find("the weights and their state alone") == 0);
        QVERIFY(hint(34 * mib).find("about 1 of its 2 saved activations fit") == 0);
        QVERIFY(hint(21 * mib).find("use smaller microbatches") == 0); // no activation fits at all
        QVERIFY(hint(1'000 * mib).empty());
        QVERIFY(hint(0).empty());
    }

    void aDeviceOnTheLimitIsNotCrossed()
    {
        Design design = twoStages();
        const Bytes peak = predict(design).program.devices[0].peakBytes;
        std::vector<MemoryPeak> crossed;
        design.cluster.devices[0].memory = peak;
        checkDesign(design, &crossed);
        QVERIFY(crossed.empty());
        design.cluster.devices[0].memory = peak - 1;
        QVERIFY(hasErrors(checkDesign(design, &crossed)));
        QCOMPARE(crossed.size(), std::size_t{1});
    }

    void aDeviceFilledByItsWeightsHasNoBlockToName()
    {
        Design design = twoStages();
        design.schedule.deviceOfStage = {0, 0};
        design.schedule.order = {{{Op::F, 0, 0},
                                  {Op::F, 1, 0},
                                  {Op::F, 0, 1},
                                  {Op::F, 1, 1},
                                  {Op::B, 1, 0},
                                  {Op::B, 0, 0},
                                  {Op::B, 1, 1},
                                  {Op::B, 0, 1}}};
        for (StageCosts& stage : design.costs.stages)
            stage = StageCosts{};
        design.costs.stages[0].parameters = 5 * mib;
        design.cluster.devices[0].memory = mib;
        std::vector<MemoryPeak> crossed;
        QVERIFY(hasErrors(checkDesign(design, &crossed)));
        QCOMPARE(crossed.size(), std::size_t{1});
        QCOMPARE(crossed[0].persistent, 5 * mib);
        QVERIFY(crossed[0].saved.empty());
        QCOMPARE(crossed[0].time, Nanoseconds{0});
    }
};

PIPEWRIGHT_TEST(TestDesignCheck, QCoreApplication)
#include "tst_designcheck.moc"
