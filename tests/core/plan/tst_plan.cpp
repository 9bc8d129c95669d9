// SPDX-License-Identifier: GPL-3.0-or-later
// Whole ways to train: the list against every plan of small spaces, one prediction each; what is refused and why.
#include "core/plan/plan.h"
#include "core/plan/planbounds.h"
#include "core/plan/planclusters.h"
#include "core/plan/plandifference.h"
#include "core/plan/planstate.h"
#include "core/plan/planwords.h"
#include "core/predict/predict.h"
#include "core/presets/presets.h"
#include "errorof.h"
#include "sanitized.h"
#include "testmain.h"

#include <QTest>

#include <algorithm>
#include <atomic>
#include <limits>

using namespace pipewright;
using namespace pipewright::test;

namespace {

PlanRequest requestOf(const char* model, const char* cluster, int devices, int batch)
{
    static const PresetLibrary library;
    PlanRequest request;
    request.shape = library.model(model);
    request.source = "a test";
    request.cluster = [name = std::string(cluster)](int pipeline, std::int64_t members) {
        return std::make_shared<const Cluster>(library.cluster(name, pipeline, members));
    };
    request.devices = devices;
    request.batch = batch;
    request.top = 4;
    return request;
}

/// llama-like, small enough that every plan of it is predicted in a moment.
PlanRequest small()
{
    PlanRequest request = requestOf("llama-3-8b", "h100-nodes", 4, 8);
    request.shape.layers = 6;
    return request;
}

struct Known {
    Nanoseconds step = 0;
    Bytes peak = 0;
};

/// Every plan of the space that fits, and that each is above its bounds.
std::vector<Known> everyPlan(const PlanRequest& request, QString& fault)
{
    std::vector<Known> all;
    for (const PlanSetting& setting : settingsOf(request, request.shape).possible) {
        for (const PlanOrder& order : ordersOf(request, setting, request.shape.layers)) {
            Known plan;
            try {
                const Metrics metrics = predict(designOf(request, setting, *order.family, order.chunks)).metrics;
                plan.step = metrics.makespan;
                for (const DeviceMetrics& device : metrics.devices)
                    plan.peak = std::max(plan.peak, device.peakBytes);
            } catch (const Error&) {
                continue;
            }
            const PlanBounds bounds = boundsOf(request, setting, order);
            if (plan.step < bounds.step || plan.peak < bounds.peak)
                fault = QString("%1 takes %2 ns and %3 bytes, below its bounds %4 and %5")
                            .arg(order.family->name.data())
                            .arg(plan.step)
                            .arg(plan.peak)
                            .arg(bounds.step)
                            .arg(bounds.peak);
            const Bytes limit = memoryLimitOf(request, *clusterOf(request, setting));
            if (limit == 0 || plan.peak <= limit)
                all.push_back(plan);
        }
    }
    return all;
}

/// The steps of the best, and steps and peaks of those that no other one beats in both.
void compare(const PlanRequest& request)
{
    const PlanResult found = findPlans(request);
    QVERIFY(found.complete && found.frontierComplete && found.frontierTolerance == 0);
    QString fault;
    std::vector<Known> all = everyPlan(request, fault);
    QVERIFY2(fault.isEmpty(), qPrintable(fault));
    QVERIFY(all.size() > 50);
    QVERIFY2(found.predicted <= static_cast<std::int64_t>(found.considered), "more predicted than there are");
    std::sort(all.begin(), all.end(),
              [](const Known& a, const Known& b) { return std::tie(a.step, a.peak) < std::tie(b.step, b.peak); });
    QVERIFY(found.plans.size() >= static_cast<std::size_t>(request.top));
    for (std::size_t i = 0; i < static_cast<std::size_t>(request.top); ++i)
        QCOMPARE(found.plans[i].step, all[i].step);
    std::vector<std::pair<Nanoseconds, Bytes>> frontier, expected;
    for (const std::size_t i : found.frontier)
        frontier.emplace_back(found.plans[i].step, found.plans[i].peak);
    Bytes least = std::numeric_limits<Bytes>::max();
    for (const Known& plan : all)
        if (plan.peak < least) {
            least = plan.peak;
            expected.emplace_back(plan.step, plan.peak);
        }
    QCOMPARE(frontier, expected);
    for (const TrainingPlan& plan : found.plans) {
        const Metrics metrics = predict(plan.design).metrics;
        QCOMPARE(metrics.makespan, plan.step);
        QVERIFY(!plan.why.empty() && plan.tokensPerSecondPerDevice > 0 && plan.mfu > 0 && plan.mfu < 1);
    }
}

} // namespace

class PlanTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void aClusterWithFewerDevicesIsTheReasonWhyThereIsNoPlan()
    {
        PlanRequest request = small();
        request.cluster = planClusters("h100-node");
        request.devices = 64;
        const PlanResult result = findPlans(request);
        QVERIFY(result.complete && result.plans.empty());
        QVERIFY(std::any_of(result.reasons.begin(), result.reasons.end(), [](const auto& each) {
            return each.first.find("has 8 devices, and 64 are needed") != std::string::npos;
        }));
    }

    void theClusterOfADesignIsRepeatedAsFarAsItGoes()
    {
        const PresetLibrary library;
        const Cluster nodes = library.cluster("h100-nodes", 4);
        const PlanClusters clusters = planClusters(nodes, 4);
        QCOMPARE(*clusters(16, 8), library.cluster("h100-nodes", 16, 8)); // 512 nodes of 8
        QCOMPARE(clusters(16, 8), clusters(16, 8));                       // made once
        QVERIFY(errorOf([&] { (void)clusters(4096, 2); }).find("has 4096 devices, and 8192") != std::string::npos);
        const PlanClusters few = planClusters(library.cluster("h100-node", 4), 4);
        QCOMPARE(few(2, 2)->devices.size(), std::size_t{2});
        QVERIFY(errorOf([&] { (void)few(2, 4); }).find("has 4 devices, and 8") != std::string::npos);
        Cluster mixed = nodes;
        mixed.devices[1].memory /= 2;
        QVERIFY(errorOf([&] { (void)planClusters(mixed, 4); }).find("differ") != std::string::npos);
        mixed = nodes;
        mixed.linkOfPair[{0, 1}] = nodes.link;
        QVERIFY(errorOf([&] { (void)planClusters(mixed, 4); }).find("between single devices") != std::string::npos);
    }

    void whatIsFoundOnTheWayHoldsTheBestAndTheFrontier()
    {
        PlanRequest request = small();
        std::vector<PlanFound> found;
        request.found = [&](const PlanFound& plan) { found.push_back(plan); };
        PlanProgress last;
        request.progress = [&](const PlanProgress& now) { last = now; };
        const PlanResult result = findPlans(request);
        for (const TrainingPlan& plan : result.plans)
            QVERIFY(std::any_of(found.begin(), found.end(), [&](const PlanFound& each) {
                return each.step == plan.step && each.peak == plan.peak
                       && each.tokensPerSecondPerDevice == plan.tokensPerSecondPerDevice;
            }));
        QVERIFY(last.bestProved && last.considered == result.considered && last.predicted == result.predicted);
        // Without the frontier the best are the same, after no more predictions.
        request.frontier = false;
        const PlanResult best = findPlans(request);
        QVERIFY(best.complete && !best.frontierComplete && best.predicted <= result.predicted);
        for (std::size_t i = 0; i < static_cast<std::size_t>(request.top); ++i)
            QCOMPARE(best.plans[i].step, result.plans[i].step);
    }

    void theListIsThatOfAllPlansOfADenseModel()
    {
        PlanRequest request = small();
        request.pipeline = sanitized ? std::optional(2) : std::nullopt; // of a space that takes minutes
        request.context = sanitized ? std::optional(1) : std::nullopt;
        compare(request);
    }

    void withLittleMemoryToo()
    {
        PlanRequest request = small();
        request.memoryLimit = Bytes{20} << 30;
        request.families = {"1f1b", "interleaved-1f1b", "zb-v", "gpipe", "seq1f1b"};
        request.context = sanitized ? std::optional(1) : std::nullopt;
        compare(request);
    }

    void andOfAMixtureOfExperts()
    {
        PlanRequest request = requestOf("mixtral-8x7b", "h100-nodes", 8, 8);
        request.shape.layers = 4;
        request.families = {"1f1b", "zb-h1"};
        request.microbatchSize = 1;
        request.pipeline = sanitized ? std::optional(2) : std::nullopt;
        request.context = sanitized ? std::optional(1) : std::nullopt;
        compare(request);
        // Folding experts over tensor and context is a dimension of its own where there are such members.
        const auto count = [&](std::optional<bool> folded) {
            request.foldedExperts = folded;
            const std::vector<PlanSetting> settings = settingsOf(request, request.shape).possible;
            for (const PlanSetting& setting : settings)
                if (setting.foldedExperts && setting.tensor * setting.context == 1)
                    return std::ptrdiff_t{-1};
            return std::ssize(settings);
        };
        QVERIFY(count(true) > 0 && count(false) > 0);
        QCOMPARE(count(true) + count(false), count({}));
        pin(request, "folded_experts=yes", "--pin");
        compare(request);
        request.pipeline = {};
        request.expert = 8;
        request.tensor = 4;
        request.context = 1; // then there are two copies, which alone cannot share out so many
        const PlanResult eight = findPlans(request);
        QVERIFY(!eight.plans.empty());
        for (const TrainingPlan& plan : eight.plans) {
            const Parallelism& degrees = plan.design.workload->shape.parallel;
            QVERIFY(plan.setting.foldedExperts && degrees.foldedExperts && degrees.expert == 8 && degrees.data == 2);
            QCOMPARE(degreesText(plan.setting), std::string("tensor 4, expert 8 folded, data 2"));
        }
        pin(request, "folded_experts=no", "--pin");
        QVERIFY(findPlans(request).plans.empty());
        const PlanDifference pins = differenceOf({request, {}}, {request, eight});
        QCOMPARE(pins.leaderAfter()->before.why, std::string("folded_experts=no is pinned"));
    }

    void andOfWhatMixturesHave()
    {
        PlanRequest request = requestOf("mixtral-8x7b", "h100-nodes", 16, 16);
        request.shape.layers = 4;
        request.shape.framework = *frameworkNamed("megatron");
        request.shape.setPrecision(*precisionNamed("fp8-parameters"));
        request.shape.parallel.nodeDispatch = true;
        request.shape.parallel.expertSpread = 3;
        request.microbatchSize = 1;
        request.tensor = 2;
        if (sanitized)
            request.pipeline = 2;
        request.families = {"1f1b", "combined-1f1b"};
        compare(request);
        request.families = {};
        int combined = 0;
        for (const PlanSetting& setting : settingsOf(request, request.shape).possible)
            for (const PlanOrder& order : ordersOf(request, setting, request.shape.layers))
                if (order.family->combines) {
                    ++combined;
                    QVERIFY(setting.expert > 1 && (order.chunks == 1) == (setting.pipeline == 1));
                    const Parallelism parallel = workloadOf(request, setting).shape.parallel;
                    QVERIFY(parallel.nodeDispatch && parallel.expertSpread == std::min(setting.expert, 3));
                }
        QVERIFY(combined > 0);
    }

    void andWithASlowNode()
    {
        PlanRequest request = small();
        request.cluster = withSlowNode(
            [of = request.cluster](int devices, std::int64_t members) {
                Cluster nodes = *of(devices, members);
                nodes.nodes.devices = 2; // of 4 in all
                return std::make_shared<const Cluster>(std::move(nodes));
            },
            0.25);
        QVERIFY(request.cluster(4, 1)->devices[1].peakFlops < request.cluster(4, 1)->devices[2].peakFlops);
        QCOMPARE(request.cluster(4, 1)->devices[1], request.cluster(2, 2)->devices[0]);
        QCOMPARE(request.cluster(2, 2)->devices[1], request.cluster(4, 1)->devices[2]);
        request.microbatchSize = 1;
        request.families = {"1f1b", "interleaved-1f1b", "zb-v", "gpipe", "dualpipe-v"};
        compare(request);
        const auto fp8 = [&](int device) { return request.cluster(4, 1)->devices[device].peakOf(ProductType::Fp8); };
        QVERIFY(fp8(2) > 0 && fp8(1) == fp8(2) * 0.75);
        request.shape.products = ProductType::Fp8;
        request.families = {"1f1b", "zb-v"};
        compare(request);
        const auto refusal = [&](const char* cluster, double slower) {
            return errorOf([&] { (void)withSlowNode(planClusters(cluster), slower)(1, 1); });
        };
        QVERIFY(refusal("h100-node", 0.1).find("states no nodes") != std::string::npos);
        QVERIFY(refusal("h100-nodes", 1).find("100 % slower") != std::string::npos);
    }

    void twoListsDifferByWhatLeadsEntersAndLeaves()
    {
        PlanRequest before = small(), after = small();
        before.devices = 8;
        before.batch = after.batch = 12;
        after.devices = 6;
        after.memoryLimit = Bytes{30} << 30;
        const PlanResult eight = findPlans(before), six = findPlans(after);
        const PlanDifference difference = differenceOf({before, eight}, {after, six});
        QCOMPARE(difference.stepBefore, eight.plans.front().step);
        QCOMPARE(difference.stepAfter, six.plans.front().step);
        QCOMPARE(difference.tokensPerSecondAfter, six.plans.front().tokensPerSecondPerDevice * 6);
        QVERIFY(difference.leaderBefore() != nullptr && difference.leaderAfter() != nullptr);
        std::vector<std::size_t> places;
        bool isImpossible = false, isSlower = false;
        for (const PlanMove& move : difference.moves) {
            QVERIFY(move.before.place || move.after.place);
            if (move.after.place)
                places.push_back(*move.after.place);
            for (const auto& [side, result] : {std::pair(&move.before, &eight), std::pair(&move.after, &six)}) {
                QVERIFY(!side->why.empty());
                isImpossible = isImpossible || side->step == 0;
                if (side->place)
                    QCOMPARE(side->step, result->plans[*side->place].step);
                else if (side->step > 0) { // what is not among the best is no shorter
                    QVERIFY(side->step >= result->plans.front().step);
                    isSlower = true;
                }
            }
        }
        QCOMPARE(places, (std::vector<std::size_t>{0, 1, 2, 3}));
        QVERIFY(isImpossible && isSlower);
        // The same question has no difference.
        for (const PlanMove& move : differenceOf({before, eight}, {before, eight}).moves)
            QVERIFY(move.before.place && move.before.place == move.after.place);
        // What a list was not asked for it does not hold.
        PlanRequest pinned = before;
        pinned.recompute = Recompute::Full;
        const PlanResult full = findPlans(pinned);
        const PlanDifference pins = differenceOf({before, eight}, {pinned, full});
        QCOMPARE(pins.leaderBefore()->after.step, Nanoseconds{0});
        QCOMPARE(pins.leaderBefore()->after.why, std::string("recompute=full is pinned"));
        QVERIFY(pins.leaderAfter()->before.step > eight.plans.front().step);
    }

    void theResultDoesNotDependOnThreads()
    {
        PlanRequest request = small();
        request.pipeline = 2;
        const PlanResult one = findPlans(request);
        request.threads = 3;
        const PlanResult three = findPlans(request);
        QCOMPARE(three.plans.size(), one.plans.size());
        for (std::size_t i = 0; i < one.plans.size(); ++i)
            QVERIFY(three.plans[i].design == one.plans[i].design && three.plans[i].why == one.plans[i].why);
        QCOMPARE(three.frontier, one.frontier);
    }

    void whatIsPinnedIsKept()
    {
        PlanRequest request = small();
        for (const char* each : {"tensor=2", "data=2", "recompute=full", "zero=1", "microbatch_size=2"})
            pin(request, each, "--pin");
        const PlanResult found = findPlans(request);
        QVERIFY(!found.plans.empty());
        for (const TrainingPlan& plan : found.plans) {
            QCOMPARE(plan.setting.tensor, 2);
            QCOMPARE(plan.setting.data, 2);
            QCOMPARE(plan.setting.microbatchSize, 2);
            QCOMPARE(plan.setting.zero.level, 1);
            QVERIFY(plan.setting.recompute == Recompute::Full);
            const Parallelism& degrees = plan.design.workload->shape.parallel;
            QVERIFY(degrees.tensor == 2 && degrees.sequence && degrees.data == 2);
        }
        for (const char* wrong : {"tensor", "tensor=", "tensor=0", "tensor=two", "heads=2", "reshard=often",
                                  "folded_experts=1", "recompute=some", "zero=-1", ""})
            QVERIFY2(!errorOf([&] { pin(request, wrong, "--pin"); }).empty(), wrong);
    }

    void whatCannotBeSaysWhy()
    {
        PlanRequest request = small();
        request.tensor = 3;
        PlanResult found = findPlans(request);
        QVERIFY(found.plans.empty() && found.refused.shape > 0);
        request = small();
        request.devices = 64;
        request.tensor = 64; // more than there are heads
        found = findPlans(request);
        QVERIFY(found.plans.empty() && !found.reasons.empty());
        QVERIFY2(found.reasons.begin()->first.find("heads cannot be shared out") != std::string::npos,
                 found.reasons.begin()->first.c_str());
        request = small();
        request.batch = 1;
        request.data = 4;
        found = findPlans(request);
        QVERIFY(found.plans.empty() && found.refused.batch > 0);
        request = small();
        request.memoryLimit = Bytes{1} << 20;
        found = findPlans(request);
        QVERIFY(found.plans.empty() && found.refused.memory > 0);
        request.families = {"no-family"};
        QVERIFY(errorOf([&] { findPlans(request); }).find("is no family") != std::string::npos);
        request = small();
        request.batch = 2'000'000'000; // far more than can be run
        request.families = {"1f1b"};
        found = findPlans(request);
        QVERIFY(found.plans.empty() && found.complete);
        request.devices = 0;
        QVERIFY(!errorOf([&] { findPlans(request); }).empty());
    }

    void whatWasInterruptedGoesOnToTheSameAnswer()
    {
        PlanRequest request = small();
        if (sanitized)
            request.pipeline = 2;
        int asked = 0;
        request.isStopped = [&asked] { return ++asked < 0; };
        const PlanResult whole = findPlans(request);
        const int questions = asked;
        QVERIFY(whole.complete && whole.frontierComplete && questions > 100);
        request.saveEvery = std::chrono::milliseconds(0);
        for (const int part : {0, 1, 5, 30, 60, 90, 95, 99}) {
            // Killed: nothing of the end is seen, and the state went through its file.
            std::string text;
            asked = 0;
            request.resumed = nullptr;
            request.isStopped = [&] { return ++asked > questions * part / 100; };
            request.save = [&](const PlanState& state) { text = stateText(state); };
            const PlanResult stopped = findPlans(request);
            QVERIFY(!stopped.complete || !stopped.frontierComplete);
            PlanRequest again = request;
            const PlanState state = readState(text, "state", "", request);
            again.resumed = std::make_shared<const PlanState>(state);
            again.isStopped = nullptr;
            again.threads = part == 60 ? 3 : 1;
            const PlanResult resumed = findPlans(again);
            QVERIFY(resumed.complete && resumed.frontierComplete);
            QCOMPARE(resumed.plans.size(), whole.plans.size());
            for (std::size_t i = 0; i < whole.plans.size(); ++i) {
                QVERIFY(resumed.plans[i].design == whole.plans[i].design);
                QCOMPARE(resumed.plans[i].why, whole.plans[i].why);
            }
            QCOMPARE(resumed.frontier, whole.frontier);
            QCOMPARE(resumed.considered, whole.considered);
            QVERIFY(resumed.predicted >= static_cast<std::int64_t>(state.predicted.size()));
            if (again.threads == 1) {
                QCOMPARE(resumed.predicted, whole.predicted);
                QCOMPARE(resumed.refused.memory, whole.refused.memory);
                QCOMPARE(resumed.refused.shape, whole.refused.shape);
                QCOMPARE(resumed.reasons, whole.reasons);
            }
        }
    }

    void aStateIsOfOneQuestionAndOneVersion()
    {
        PlanRequest request = small();
        request.pipeline = 4;
        std::string text;
        request.save = [&](const PlanState& state) {
            PlanState versioned = state;
            versioned.program = "pipewright 1";
            text = stateText(versioned);
        };
        request.saveEvery = std::chrono::milliseconds(0);
        (void)findPlans(request);
        (void)readState(text, "state", "pipewright 1", request);
        const auto refusal = [&](const std::string& state, const PlanRequest& asked,
                                 const char* program = "pipewright 1") {
            return errorOf([&] { (void)readState(state, "state", program, asked); });
        };
        QVERIFY(refusal(text, request, "pipewright 2").find("written by pipewright 1") != std::string::npos);
        PlanRequest other = request;
        other.batch = 16;
        QVERIFY(refusal(text, other).find("batch was 8, and is 16") != std::string::npos);
        other = request;
        other.shape.layers = 8;
        QVERIFY(refusal(text, other).find("another model") != std::string::npos);
        other = request;
        other.cluster = planClusters("h200-nodes");
        QVERIFY(refusal(text, other).find("another cluster") != std::string::npos);
        other = request;
        pin(other, "recompute=full", "--pin");
        QVERIFY(refusal(text, other).find("recompute was free, and is full") != std::string::npos);
        for (std::size_t length = 0; length < text.size() - 1; length += 1 + text.size() / 50)
            QVERIFY(refusal(text.substr(0, length), request).find("is no state") != std::string::npos);
        const auto replaced = [&](const std::string& from, const std::string& to) {
            std::string changed = text;
            const std::size_t at = changed.find(from);
            return at == std::string::npos ? changed : changed.replace(at, from.size(), to);
        };
        for (const auto& [from, to] :
             {std::pair<std::string, std::string>{"\"predicted\":[[", "\"predicted\":[[9999999,"},
              {"plan state 1", "plan state 2"},
              {"\"bounded\":[", "\"bounded\":[7,"},
              {"\"predicted\":[[", "\"predicted\":[[\"two\","}})
            QVERIFY2(refusal(replaced(from, to), request).find("is no state") != std::string::npos, from.c_str());
    }

    void aStopReturnsWhatThereIs()
    {
        PlanRequest request = small();
        std::atomic<bool> stop{false};
        request.isStopped = [&stop] { return stop.load(); };
        request.progress = [&](const PlanProgress& now) { stop = now.best > 0; };
        const PlanResult found = findPlans(request);
        QVERIFY(!found.complete && !found.plans.empty());
    }
};

PIPEWRIGHT_TEST(PlanTest, NoApplication)
#include "tst_plan.moc"
