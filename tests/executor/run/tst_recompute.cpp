// SPDX-License-Identifier: GPL-3.0-or-later
// Stages that make their activations again train to the bits of those that keep them, in the bytes that were predicted.
#include "core/design/redesign.h"
#include "core/model/transformer.h"
#include "core/predict/predict.h"
#include "core/schedule/edits.h"
#include "core/schedule/recomputeblocks.h"
#include "core/schedule/validate.h"
#include "core/schedule/weightplan.h"
#include "executor/run/safetensorsfile.h"
#include "executor/run/trainabledesign.h"
#include "makers/designs.h"
#include "makers/models.h"
#include "makers/trainedrun.h"
#include "sanitized.h"
#include "testmain.h"

#include <QTemporaryDir>
#include <QTest>

#include <algorithm>
#include <map>

using namespace pipewright;
using test::trained;

namespace {

std::vector<Recompute> everyStage(const Design& design, Recompute recompute)
{
    return std::vector<Recompute>(static_cast<std::size_t>(design.schedule.stages()), recompute);
}

/// A classifier on as many stages as the design has.
Design ofClassifier(const Design& design)
{
    DesignRequest request = test::requestFor(design.schedule.family, design.schedule.devices(), 8);
    request.model = "byte-mlp";
    return makeDesign(request);
}

} // namespace

class RecomputeTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void everyFamilyTrainsToTheSameBits_data()
    {
        QTest::addColumn<QByteArray>("family");
        int row = 0;
        for (const Family& family : families())
            if (mayRecompute(test::possibleSchedule(std::string(family.name), 4, 8)) && !leftOut(row++))
                QTest::newRow(family.name.data()) << QByteArray(family.name.data());
    }
    void everyFamilyTrainsToTheSameBits()
    {
        QFETCH(QByteArray, family);
        const Design kept = test::tinyGpt(family.toStdString(), 4, 8);
        const RunResult usual = trained(kept);
        QVERIFY(usual.gradients->bitEqual);
        std::vector<std::pair<const char*, std::vector<Recompute>>> choices;
        choices.emplace_back("block-selective", everyStage(kept, Recompute::BlockSelective));
        choices.emplace_back("block", everyStage(kept, Recompute::Block));
        choices.emplace_back("mixed", everyStage(kept, Recompute::None));
        for (std::size_t s = 0; s < choices.back().second.size(); ++s)
            choices.back().second[s] = recomputeKinds[s % std::size(recomputeKinds)];
        choices.emplace_back("selective", everyStage(kept, Recompute::Selective));
        choices.emplace_back("full", everyStage(kept, Recompute::Full));
        for (const auto& [name, recompute] : choices) {
            const Design design = withRecompute(kept, recompute);
            if (hasErrors(validate(design.schedule))) { // its backward reads other weights than its forward
                QVERIFY(hasUpdates(design.schedule));
                continue;
            }
            QCOMPARE(design.schedule.blocks() > kept.schedule.blocks(),
                     std::ranges::any_of(recompute, &Recompute::byBlock));
            const RunResult result = trained(design);
            QVERIFY2(result.gradients->bitEqual, name);
            QCOMPARE(result.losses, usual.losses);
            QCOMPARE(result.peakBytes, result.predictedPeakBytes);
            std::vector<Bytes> predicted;
            for (const DeviceMetrics& device : predict(trainableDesign(design)).metrics.devices)
                predicted.push_back(device.peakBytes);
            QCOMPARE(result.peakBytes, predicted);
        }
    }

    /// Under the rules that update amid the step every R reads the version, and the prediction, of its forward.
    void aRecomputeReadsTheWeightsOfItsForward()
    {
        int later = 0, predicted = 0;
        for (const Family& family : families()) {
            if (!family.updates)
                continue;
            Schedule schedule = test::possibleSchedule(std::string(family.name), 4, 8);
            const Design kept = test::evenDesign({.saved = 100}, schedule);
            schedule = withRecompute(schedule, everyStage(kept, Recompute::Block));
            const Program program = predict(test::evenDesign({.saved = 100}, schedule)).program;
            std::map<std::pair<int, int>, WeightUse> forwards;
            for (TaskId t = 0; t < program.tasks.size(); ++t)
                if (program.tasks[t].op == Op::F && program.tasks[t].kind == TaskKind::Compute)
                    forwards[{program.tasks[t].stage, program.tasks[t].microbatch()}] = program.weights[t];
            for (TaskId t = 0; t < program.tasks.size(); ++t)
                if (program.tasks[t].op == Op::R && program.tasks[t].kind == TaskKind::Compute) {
                    QVERIFY(
                        (program.weights[t] == forwards.at({program.tasks[t].stage, program.tasks[t].microbatch()})));
                    later += program.weights[t].version > 0;
                    predicted += program.weights[t].steps > 0;
                }
        }
        QVERIFY(later > 0 && predicted > 0);
        Schedule hopping = test::possibleSchedule("cdp-v2", 4, 4);
        hopping.shardedStates = true;
        hopping.recompute.assign(static_cast<std::size_t>(hopping.stages()), Recompute::Block);
        QVERIFY(!mayRecompute(hopping));
        QVERIFY(hasErrors(validate(hopping)));
    }

    /// A backward reads one version of its weights: where it is not its forward's, it cannot make that again.
    void aBackwardThatReadsOtherWeightsDoesNotRecompute()
    {
        int refused = 0, taken = 0;
        for (const Family& family : families()) {
            if (!family.updates)
                continue;
            const Schedule schedule = test::possibleSchedule(std::string(family.name), 4, 8);
            const Design kept = test::evenDesign({.saved = 100}, schedule);
            if (!mayRecompute(schedule))
                continue;
            const Diagnostics found = validate(withRecompute(schedule, everyStage(kept, Recompute::Full)));
            (hasErrors(found) ? refused : taken) += 1;
            if (hasErrors(found))
                QVERIFY2(toString(found).find("recompute by R blocks") != std::string::npos, toString(found).c_str());
        }
        QVERIFY(refused > 0 && taken > 0);
    }

    void aDeviceThatRecomputesHoldsLess()
    {
        for (const char* family : {"gpipe", "1f1b", "zb-h1"}) {
            const Design kept = test::tinyGpt(family, 4, 8);
            const auto second = [&](const Design& design) { return trained(design).peakBytes[1]; };
            const Bytes all = second(kept),
                        selective = second(withRecompute(kept, everyStage(kept, Recompute::BlockSelective))),
                        block = second(withRecompute(kept, everyStage(kept, Recompute::Block))),
                        full = second(withRecompute(kept, everyStage(kept, Recompute::Full)));
            QVERIFY2(block < all && selective < all && full < all && full <= block,
                     qPrintable(QString("%1: full %2, block %3, selective %4 of %5")
                                    .arg(family)
                                    .arg(full)
                                    .arg(block)
                                    .arg(selective)
                                    .arg(all)));
        }
    }

    void whatItPredictsIsWrittenAsWithoutRecomputation()
    {
        const QTemporaryDir folder;
        for (const bool narrow : {false, true}) {
            ModelShape shape = test::llamaShape(4);
            shape.dataType = narrow ? DataType::Bf16 : DataType::Fp32;
            const Design kept = test::tinyDesign("1f1b", 2, 4, shape);
            std::vector<std::vector<float>> written;
            for (const Recompute recompute : recomputeKinds) {
                RunOptions options;
                options.steps = 2;
                options.dump = folder.filePath("dump").toStdString();
                options.overwriteTrace = true;
                run(withRecompute(kept, everyStage(kept, recompute)), options);
                written.push_back(SafetensorsFile::open(options.dump).values("probabilities"));
            }
            QVERIFY(!written[0].empty());
            for (const std::vector<float>& each : written)
                QVERIFY(each == written[0]);
        }
    }

    void otherModelsRecomputeToo()
    {
        const Design classifier = ofClassifier(test::tinyGpt("1f1b", 2, 8));
        for (const Recompute recompute : {Recompute::Block, Recompute::Full}) {
            const RunResult result = trained(withRecompute(classifier, everyStage(classifier, recompute)));
            QVERIFY(result.gradients->bitEqual);
            QCOMPARE(result.peakBytes, result.predictedPeakBytes);
        }
        // It has no attention.
        QVERIFY_THROWS_EXCEPTION(Error, withRecompute(classifier, everyStage(classifier, Recompute::BlockSelective)));
    }

    /// As soon as its forward has run: what it makes then lies about longer, and all is still as predicted.
    void aRecomputeRunsWhereAPersonPutIt()
    {
        Design design = test::tinyGpt("gpipe", 4, 8);
        const RunResult usual = trained(design);
        design = withRecompute(design, everyStage(design, Recompute::Block));
        const Bytes before = predict(design).metrics.devices[1].peakBytes;
        for (int m = 0; m < 3; ++m) {
            const EditResult moved =
                moveBlock(design.schedule, {Op::R, 1, m, 0}, find(design.schedule, {Op::F, 1, m, 0}).index + 1);
            QVERIFY(moved.legal());
            design.schedule = moved.schedule;
        }
        QVERIFY(predict(design).metrics.devices[1].peakBytes > before);
        const RunResult result = trained(design);
        QVERIFY(result.gradients->bitEqual);
        QCOMPARE(result.losses, usual.losses);
        QCOMPARE(result.peakBytes, result.predictedPeakBytes);
    }

    void timedBlocksRecomputeToo()
    {
        Design design = test::evenDesign({.transfer = 1000, .saved = 1 << 20, .savedForWeightGrad = 1 << 19},
                                         test::possibleSchedule("zb-h1", 4, 8));
        Design layers = test::tinyGpt("zb-h1", 4, 8); // only a model says what a layer is
        RunOptions options;
        options.steps = 1;
        options.clock = RunOptions::Clock::Virtual;
        for (const Design& again : {withRecompute(design, everyStage(design, Recompute::Block)),
                                    withRecompute(layers, everyStage(layers, Recompute::Full))}) {
            const RunResult result = run(again, options);
            QCOMPARE(result.peakBytes, result.predictedPeakBytes);
            QCOMPARE(result.stepTimes.front(), predict(again).metrics.makespan);
        }
        QVERIFY_THROWS_EXCEPTION(Error, withRecompute(design, everyStage(design, Recompute::Full)));
    }
};

PIPEWRIGHT_TEST(RecomputeTest, NoApplication)
#include "tst_recompute.moc"
