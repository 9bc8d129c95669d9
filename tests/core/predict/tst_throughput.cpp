// SPDX-License-Identifier: GPL-3.0-or-later
// Tokens per second, model FLOPs and utilization of a predicted step, against published formulas.
#include "core/design/newdesign.h"
#include "core/design/redesign.h"
#include "core/model/activationmemory.h"
#include "core/predict/predict.h"
#include "core/predict/throughput.h"
#include "core/presets/presets.h"
#include "makers/clusters.h"
#include "makers/designs.h"
#include "testmain.h"

#include <QTest>

#include <cmath>

using namespace pipewright;

namespace {

} // namespace

class ThroughputTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void tokensAreThoseOfAllMicrobatches()
    {
        const Design d = test::presetDesign("llama-3-8b");
        const auto tokens =
            double(d.workload->shape.sequence * d.workload->shape.microbatchSize * d.schedule.microbatches);
        QCOMPARE(tokensPerSecond(d, 2'000'000'000), tokens / 2);
        QCOMPARE(tokensPerSecond(d, 0), 0.0);
        QCOMPARE(tokensPerSecond(Design{}, 1000), 0.0);
    }

    /// The layer lists against the published closed form for one iteration of a GPT model.
    void modelFlopsAreThoseOfThePublishedFormula()
    {
        const Design d = test::presetDesign("megatron-22b");
        const double published = iterationFlops(
            d.workload->shape, double(d.workload->shape.microbatchSize * d.schedule.microbatches), Recompute::None);
        QVERIFY(std::abs(modelFlops(d) / published - 1) < 0.02);
    }

    void utilizationIsFlopsOverPeakAndUnknownWithoutARate()
    {
        Design d = test::withoutRates(test::presetDesign("llama-3-8b"));
        const double peak = 4 * d.cluster.devices[0].peakFlops;
        QVERIFY(std::abs(modelFlopsUtilization(d, 1'000'000'000) - modelFlops(d) / peak) < 1e-12);
        // Devices at an efficiency of e without any bubble would reach e; a bubble can only take away.
        const Prediction prediction = predict(d);
        const double reached = modelFlopsUtilization(d, prediction.metrics.makespan);
        QVERIFY(reached > 0.3 * d.cluster.devices[0].efficiency && reached < d.cluster.devices[0].efficiency);
        d.cluster.devices[2].peakFlops = 0;
        QCOMPARE(modelFlopsUtilization(d, 1'000'000'000), 0.0);
    }

    void transfersAreCountedOncePerValueAndDevice()
    {
        const Design d = test::presetDesign("llama-3-8b");
        const Program program = predict(d).program;
        // A chain over four devices: activations three times down, gradients three times up, per microbatch.
        QCOMPARE(transferBytes(program), Bytes(6) * d.schedule.microbatches * d.costs.stages[0].output);
        // In a V the middle two stages are on one device, and nothing travels between them.
        const Design v = withFamily(d, *findFamily("v-half"));
        QCOMPARE(transferBytes(predict(v).program), Bytes(12) * d.schedule.microbatches * d.costs.stages[0].output);
    }
};

PIPEWRIGHT_TEST(ThroughputTest, NoApplication)
#include "tst_throughput.moc"
