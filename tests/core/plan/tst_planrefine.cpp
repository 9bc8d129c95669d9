// SPDX-License-Identifier: GPL-3.0-or-later
// A plan past its space: never worse than it was, as `predict` says, and within the memory.
#include "core/plan/planclusters.h"
#include "core/plan/planrefine.h"
#include "core/predict/predict.h"
#include "core/presets/presets.h"
#include "testmain.h"

#include <QTest>

#include <algorithm>

using namespace pipewright;

namespace {

PlanRequest onFour(std::initializer_list<const char*> pins)
{
    PlanRequest request;
    request.shape = PresetLibrary().model("llama-3-8b");
    request.shape.layers = 10;
    request.source = "a test";
    request.cluster = planClusters("h100-nodes");
    request.devices = 4;
    request.batch = 8;
    request.top = 1;
    request.frontier = false;
    request.families = {"1f1b"};
    for (const char* each : {"pipeline=4", "microbatch_size=1"})
        pin(request, each, "--pin");
    for (const char* each : pins)
        pin(request, each, "--pin");
    return request;
}

Bytes peakOf(const Metrics& metrics)
{
    Bytes peak = 0;
    for (const DeviceMetrics& device : metrics.devices)
        peak = std::max(peak, device.peakBytes);
    return peak;
}

bool says(const RefinedPlan& plan, const char* part)
{
    return std::any_of(plan.changes.begin(), plan.changes.end(),
                       [&](const std::string& change) { return change.find(part) != std::string::npos; });
}

} // namespace

class PlanRefineTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void whatIsChangedIsShorterAndFits()
    {
        PlanRequest request = onFour({"recompute=full"});
        const PlanResult all = findPlans(request);
        const Bytes without = [] { // what the fullest device needs when nothing is made again
            const PlanResult kept = findPlans(onFour({"recompute=none"}));
            return kept.plans.front().peak;
        }();
        QVERIFY(all.plans.front().peak < without);
        request.memoryLimit = (all.plans.front().peak + without) / 2; // so not all stages can keep everything
        const PlanResult found = findPlans(request);
        const TrainingPlan& plan = found.plans.front();
        RefineOptions options;
        options.timeLimit = std::chrono::seconds(4);
        const RefinedPlan better = refined(request, plan, options);
        QCOMPARE(better.before, plan.step);
        QVERIFY(better.step < plan.step && !better.changes.empty() && !better.stopped);
        QVERIFY(says(better, "recompute ") || says(better, "offload"));
        const Metrics metrics = predict(better.design).metrics;
        QCOMPARE(metrics.makespan, better.step);
        QCOMPARE(peakOf(metrics), better.peak);
        QVERIFY(better.peak <= *request.memoryLimit);
        const std::string text = refinedText(better);
        QVERIFY2(text.starts_with("refined, not proved: ") && text.find(better.changes.front()) != std::string::npos,
                 text.c_str());
    }

    void layersMoveAwayFromTheHead()
    {
        const PlanRequest request = onFour({"recompute=none"});
        const PlanResult found = findPlans(request);
        RefineOptions options;
        options.timeLimit = std::chrono::seconds(4);
        const RefinedPlan better = refined(request, found.plans.front(), options);
        QVERIFY(better.step < better.before);
        QVERIFY(says(better, "layers per stage "));
        QCOMPARE(predict(better.design).metrics.makespan, better.step);
        QVERIFY(better.notTried.empty());
    }

    void whatCannotBeTriedIsSaid()
    {
        PlanRequest request = onFour({"recompute=full"});
        request.families = {"chimera"};
        request.cluster = [of = request.cluster](int devices, std::int64_t members) {
            Cluster without = *of(devices, members);
            without.hostLink.reset();
            return std::make_shared<const Cluster>(std::move(without));
        };
        const PlanResult found = findPlans(request);
        RefineOptions options;
        options.timeLimit = std::chrono::seconds(4);
        const RefinedPlan better = refined(request, found.plans.front(), options);
        QCOMPARE(better.notTried.size(), std::size_t{2});
        QVERIFY2(better.notTried.front().find("2 replicas") != std::string::npos, better.notTried.front().c_str());
        QVERIFY2(better.notTried.back().find("states no link to the host") != std::string::npos,
                 better.notTried.back().c_str());
        // Stopped at once, it is as it was.
        options.isStopped = [] { return true; };
        const RefinedPlan same = refined(request, found.plans.front(), options);
        QVERIFY(same.stopped && same.changes.empty() && same.design == found.plans.front().design);
        QVERIFY(refinedText(same).find("nothing shorter than") != std::string::npos);
    }
};

PIPEWRIGHT_TEST(PlanRefineTest, NoApplication)
#include "tst_planrefine.moc"
