// SPDX-License-Identifier: GPL-3.0-or-later
// What stages of measured layers hold in PyTorch, counted by hand for layers of round sizes.
#include "core/design/stagecosts.h"
#include "core/model/autogradstage.h"
#include "core/model/layertable.h"
#include "makers/models.h"
#include "testmain.h"

#include <QTest>

using namespace pipewright;

namespace {

/// Rows, two blocks that keep all but 10 bytes for W, one without parameters, and a head with a loss.
std::vector<KnownLayer> someLayers()
{
    const KnownLayer rows{
        "rows", 10, 1, 20, 21, 30, 30, 400, 0, 0, {}, 100, {.workspaceForward = 5, .workspaceBackward = 50}};
    KnownLayer block{"block", 100, 110, 90, 180, 1000, 990, 4000, 0, 0, {}, 100};
    block.autograd = {.fromInputGrad = 300,
                      .gradient = 100,
                      .workspaceForward = 250,
                      .workspaceInputGrad = 600,
                      .workspaceWeightGrad = 70,
                      .workspaceBackward = 500};
    const KnownLayer plain{"plain", 10, 10, 0, 10, 200, 0, 0, 0, 0, {}, 100, {.input = 100, .workspaceForward = 20}};
    KnownLayer head{"head", 10, 10, 10, 20, 500, 400, 800, 0, 0, {}, 4};
    head.autograd = {.fromInputGrad = 40, .output = 150, .workspaceInputGrad = 60, .workspaceBackward = 30};
    return {rows, block, block, plain, head};
}

std::vector<Layer> layers()
{
    ModelShape shape = tableShape("some", someLayers());
    shape.autograd = true;
    return tableLayers(shape);
}

} // namespace

class TestAutogradStage : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void aLaterWeightKeepsTheWholeGraphBelowIt()
    {
        const AutogradStage both = autogradStage(layers(), 1, 2);
        QCOMPARE(both.untilInputGrad, Bytes(10)); // of the upper block alone
        QCOMPARE(both.untilWeightGrad, Bytes(1990));
        // Both blocks' own, the gradient between them, and those of the stage's output and input.
        QCOMPARE(both.fromInputGrad, Bytes(300 + 300 + 100 + 100 + 100));
        const AutogradStage withoutWeights = autogradStage(layers(), 3, 1);
        QCOMPARE(withoutWeights.untilInputGrad, Bytes(200));
        QCOMPARE(withoutWeights.untilWeightGrad, Bytes(100)); // its input, which the stage holds
    }

    void passesTakeWhatTheirFullestLayerDoes()
    {
        const AutogradStage both = autogradStage(layers(), 1, 2);
        // The upper block: its output, of which the Program knows, and workspace, which has room for the input's copy.
        QCOMPARE(both.workspaceForward, Bytes(250 - 100));
        // The lower block at the end: 600 made within, the gradient behind it and its input's, 600; 900 and 100
        // counted.
        QCOMPARE(both.workspaceInputGrad, Bytes(600 + 100 + 100 + 600 - 900 - 100));
        QCOMPARE(both.workspaceWeightGrad, Bytes(70));
        // The upper one at the beginning; the lower one begins when the upper one's are gone.
        QCOMPARE(both.workspaceBackward, Bytes(500));
    }

    void theFirstStageDoesAllInW()
    {
        const AutogradStage first = autogradStage(layers(), 0, 2);
        QCOMPARE(first.untilInputGrad, Bytes(0));
        QCOMPARE(first.untilWeightGrad, Bytes(1030));
        QCOMPARE(first.fromInputGrad, Bytes(100)); // the gradient that came
        QCOMPARE(first.workspaceInputGrad, Bytes(0));
        QCOMPARE(first.workspaceWeightGrad, first.workspaceBackward);
        QCOMPARE(first.workspaceBackward, Bytes(600)); // and the block hands 100 to the rows
    }

    void theLastStageHoldsWhatTheLossWasMadeOf()
    {
        const AutogradStage last = autogradStage(layers(), 3, 2);
        QCOMPARE(last.untilInputGrad, Bytes(100 + 150));
        QCOMPARE(last.untilWeightGrad, Bytes(200 + 400 + 100));
        QCOMPARE(last.fromInputGrad, Bytes(40 + 0 + 100)); // no gradient comes
    }

    void aStageThatRecomputesKeepsTheInputsOfItsRanges()
    {
        constexpr Bytes random = 5056; // of each range
        const AutogradStage each = autogradStage(layers(), 1, 2, Recompute::Full);
        QCOMPARE(each.untilInputGrad, 100 + 2 * random); // the stage's own input is counted as received
        QCOMPARE(each.untilWeightGrad, Bytes(0));
        QCOMPARE(each.fromInputGrad, Bytes(0)); // I does all
        QCOMPARE(each.workspaceWeightGrad, Bytes(0));
        // The upper block, of which its input is there: 900 made again, its input's gradient and its own room. The
        // lower one has a gradient behind it, but 100 + 5056 are gone.
        QCOMPARE(each.workspaceBackward, Bytes(900 + 100 + 500 - 100));
        QCOMPARE(each.workspaceInputGrad, each.workspaceBackward);
        const AutogradStage both = autogradStage(layers(), 1, 2, Recompute::every(2));
        QCOMPARE(both.untilInputGrad, random);
        QCOMPARE(both.workspaceBackward, Bytes(900 + 1000 + 100 + 500 - 100));
        const AutogradStage first = autogradStage(layers(), 0, 2, Recompute::Full);
        QCOMPARE(first.untilInputGrad, Bytes(0)); // it does all in W
        QCOMPARE(first.untilWeightGrad, 100 + 2 * random);
        QCOMPARE(first.fromInputGrad, Bytes(100));
        QCOMPARE(first.workspaceWeightGrad, first.workspaceBackward);
    }

    void whatTheLossSavedIsNotRecomputed()
    {
        std::vector<Layer> model = layers();
        const AutogradStage before = autogradStage(model, 4, 1, Recompute::Full);
        model.back().autograd.savedByLoss = 40;
        const AutogradStage last = autogradStage(model, 4, 1, Recompute::Full);
        QCOMPARE(last.untilInputGrad, before.untilInputGrad + 40);
        QCOMPARE(last.workspaceBackward, before.workspaceBackward - 40);
    }

    void costsOfStagesFollow()
    {
        ModelShape shape = tableShape("some", someLayers());
        Cluster cluster;
        cluster.devices.assign(2, DeviceSpec{"Device", 0, 1e12, 1e11, 0.5});
        const auto costsOf = [&] { return formulaCosts(test::workloadOf(shape), {3, 2}, cluster, {0, 1}).stages; };
        std::vector<StageCosts> costs = costsOf();
        QCOMPARE(costs[0].savedFromInputGrad, Bytes(0));
        QCOMPARE(costs[0].inputGrad, Nanoseconds(221));
        shape.autograd = true;
        costs = costsOf();
        QCOMPARE(costs[0].inputGrad, Nanoseconds(1));
        QCOMPARE(costs[0].weightGrad, costs[0].backward);
        QCOMPARE(costs[1].inputGrad, Nanoseconds(20));
        QCOMPARE(costs[1].savedUntilWeightGrad, Bytes(700));
        QCOMPARE(costs[1].savedFromInputGrad, Bytes(140));
        QCOMPARE(costs[1].madeForWeightGrad(Op::I), Bytes(140));
        QCOMPARE(costs[1].madeForWeightGrad(Op::B), Bytes(0));
        QCOMPARE(costs[1].workspaceBackward, Bytes(0 + 100 + 30 - 100));
    }
};

PIPEWRIGHT_TEST(TestAutogradStage, NoApplication)
#include "tst_autogradstage.moc"
