// SPDX-License-Identifier: GPL-3.0-or-later
// What weight policies do to small models, against sequences worked out by hand.
#include "core/predict/policydesigns.h"
#include "core/predict/stability.h"
#include "core/predict/toytraining.h"
#include "core/program/compile.h"
#include "makers/costs.h"
#include "makers/schedules.h"
#include "testmain.h"

#include <QTest>

#include <algorithm>
#include <cmath>

using namespace pipewright;

namespace {

Program programOf(std::string_view family, const FamilyParameters& parameters)
{
    const Schedule schedule = makeSchedule(family, parameters);
    return compile(schedule, test::unitCosts(schedule.stages()));
}

template<typename Real>
ToyRun<Real> train(std::string_view family, const FamilyParameters& parameters, const ToyOptimizer& optimizer,
                   const ToyModel& model)
{
    const Program program = programOf(family, parameters);
    return trainToy<Real>(program, program.weightPolicy.optimizer, optimizer, model);
}

/// From version 1 on.
bool agrees(const std::vector<double>& weights, const std::vector<double>& expected, double tolerance = 1e-9)
{
    if (weights.size() < expected.size() + 1)
        return false;
    for (std::size_t i = 0; i < expected.size(); ++i)
        if (!(std::abs(weights[i + 1] - expected[i]) <= tolerance)) {
            qWarning("update %zu: %.15g, not %.15g", i + 1, weights[i + 1], expected[i]);
            return false;
        }
    return true;
}

const ToyOptimizer halfMomentum{.learningRate = 0.125, .momentum = 0.5};
const ToyOptimizer plain{.learningRate = 0.5, .momentum = 0};

} // namespace

class tst_weightsequences : public QObject {
    Q_OBJECT
private Q_SLOTS:
    void cyclicOnASeparableQuadraticIsExact();
    void cyclicOnACoupledPairTellsTheRulesApart();
    void twoStagesByHand();
    void threeStages_data();
    void threeStages();
    void threeStageLosses();
    void oneWeightWithALag();
    void predictionsAreExactWhereTheDirectionStays();
    void oneDeviceIsPlainTraining();
    void stabilityLimits();
    void everyFamilyThatUpdatesAmidTheRunCanBeCompared();
};

void tst_weightsequences::cyclicOnASeparableQuadraticIsExact()
{
    const ToyModel model{.kind = ToyModel::Kind::Quadratic, .start = 1};
    for (int n = 1; n <= 6; ++n)
        for (const char* family : {"dp", "cdp-v1", "cdp-v2"})
            for (int number = 0; number < workerLayoutCount; ++number) {
                const auto layout = static_cast<WorkerLayout>(number);
                const bool cyclic = std::string_view(family) != "dp";
                if (layout == WorkerLayout::Sharded && !cyclic)
                    continue;
                FamilyParameters p = test::sized(n, 6 * n);
                p.layout = layout;
                p.workers = n;
                p.devices = layout == WorkerLayout::Single     ? 1
                            : layout == WorkerLayout::Triangle ? (cyclic ? n * (n + 1) / 2 : n * n)
                                                               : n;
                const auto run = train<float>(family, p, plain, model);
                for (int j = 0; j < n; ++j) {
                    const float a = std::string_view(family) == "dp"       ? float(n)
                                    : std::string_view(family) == "cdp-v1" ? 0
                                                                           : float(j + 1);
                    float now = 1, before = 1;
                    for (int t = 0; t < 6; ++t) {
                        float sum = 0; // as the schedule adds: worker by worker
                        for (int i = 0; i < n; ++i)
                            sum += (a == float(n) || float(i) >= float(n) - a) ? now : before;
                        const float next = now - 0.5f * (sum / float(n));
                        before = now;
                        now = next;
                        QVERIFY2(run.weights[size_t(j)][size_t(t) + 1] == now,
                                 qPrintable(QString("%1 N=%2 stage %3 step %4").arg(family).arg(n).arg(j).arg(t)));
                    }
                }
            }
    const auto v2 = train<float>("cdp-v2", test::sized(4, 16), plain, model);
    QCOMPARE(v2.weights[0], (std::vector<float>{1, 0.5, 0.0625, -0.1328125, -0.1396484375}));
    QCOMPARE(v2.weights[1], (std::vector<float>{1, 0.5, 0.125, -0.03125, -0.0546875}));
    QCOMPARE(v2.weights[2], (std::vector<float>{1, 0.5, 0.1875, 0.0546875, 0.0107421875}));
    QCOMPARE(v2.weights[3], (std::vector<float>{1, 0.5, 0.25, 0.125, 0.0625}));
    QCOMPARE(train<float>("cdp-v1", test::sized(4, 16), plain, model).weights[2],
             (std::vector<float>{1, 0.5, 0, -0.25, -0.25}));
    QCOMPARE(train<float>("pipedream-2bw", test::sized(4, 16), plain, model).weights[3],
             (std::vector<float>{1, 0.5, 0, -0.25, -0.25}));
    QCOMPARE(train<float>("dp", test::sized(4, 16), plain, model).weights[1],
             (std::vector<float>{1, 0.5, 0.25, 0.125, 0.0625}));
}

void tst_weightsequences::cyclicOnACoupledPairTellsTheRulesApart()
{
    const ToyModel model{.inputs = {1, 2}};
    const ToyOptimizer optimizer{.learningRate = 0.125, .momentum = 0};
    for (const char* family : {"dp", "cdp-v1", "cdp-v2"}) {
        const auto run = train<double>(family, test::sized(2, 12), optimizer, model);
        QCOMPARE(run.weights[0][1], 71.0 / 128);
        QCOMPARE(run.weights[1][1], 71.0 / 128);
        const bool same = run.weights[0] == run.weights[1];
        QCOMPARE(same, std::string_view(family) != "cdp-v2");
    }
}

void tst_weightsequences::twoStagesByHand()
{
    const ToyModel model;
    const auto predicted = train<double>("pipeoptim", test::sized(2, 5), halfMomentum, model);
    QVERIFY(agrees(predicted.weights[0],
                   {0.546875, 0.6199798583984375, 0.7053602235391736, 0.7930880334396146, 0.8742348961848333}, 1e-15));
    QVERIFY(agrees(predicted.weights[1],
                   {0.546875, 0.61572265625, 0.6972319483757019, 0.7827563317633932, 0.8631817742010941}, 1e-15));
    const auto vanilla = train<double>("async-1f1b", test::sized(2, 5), halfMomentum, model);
    QVERIFY(agrees(vanilla.weights[0],
                   {0.546875, 0.6199798583984375, 0.7075815969146788, 0.8008326524423866, 0.8911536900331567}, 1e-15));
    QVERIFY(agrees(vanilla.weights[1],
                   {0.546875, 0.61572265625, 0.6954876631498337, 0.7794516379264246, 0.8611001512631189}, 1e-15));
}

void tst_weightsequences::threeStages_data()
{
    QTest::addColumn<QString>("family");
    QTest::addColumn<int>("steps");
    QTest::addColumn<QList<double>>("weights");
    QTest::newRow("vanilla") << "async-1f1b" << 0
                             << QList<double>{.52734375,     .592207260430, .661203954313, .758631712531, .855033482994,
                                              .940448127606, .52734375,     .589552879333, .651668181077, .733649649763,
                                              .813134392115, .883137302134, .52734375,     .587036132812, .644739754905,
                                              .720156529862, .792698066999, .856975253960};
    QTest::newRow("stashing") << "pipedream" << 0
                              << QList<double>{.52734375,     .589552879333, .653364080761, .742200826328,
                                               .829051297691, .907387571920, .52734375,     .589552879333,
                                               .651668181077, .733649649763, .813027966345, .883807739367,
                                               .52734375,     .587036132812, .644739754905, .720156529862,
                                               .792601762535, .857602536689};
    QTest::newRow("pipeoptim") << "pipeoptim" << int(PredictionSteps::Paper)
                               << QList<double>{.52734375,     .592207260430, .660856745673, .748819498867,
                                                .834243782847, .870927610994, .52734375,     .589552879333,
                                                .651373713310, .730212067369, .810604349190, .844864754427,
                                                .52734375,     .587036132812, .645905973157, .723703363774,
                                                .802980197951, .836638007473};
    QTest::newRow("pipeoptim, steps of the code")
        << "pipeoptim" << int(PredictionSteps::Code)
        << QList<double>{.52734375, .5912567526, .6582489940, .7325340297, .8034102854, .7960302480,
                         .52734375, .5886516571, .6490649255, .7175662575, .7886265887, .7775054375,
                         .52734375, .5861816406, .6451491935, .7168523094, .7922370412, .7796076431};
    QTest::newRow("spectrain") << "spectrain" << 0
                               << QList<double>{.52734375,     .593861848116, .666255413729, .755977396314,
                                                .843435955930, .860900863217, .52734375,     .591121673584,
                                                .656112548488, .736089685543, .818143901393, .833134607292,
                                                .52734375,     .586181640625, .644066727720, .717308246336,
                                                .792299369706, .805296284118};
}

void tst_weightsequences::threeStages()
{
    QFETCH(QString, family);
    QFETCH(int, steps);
    QFETCH(QList<double>, weights);
    FamilyParameters p = test::sized(3, 6);
    p.weights.steps = static_cast<PredictionSteps>(steps);
    const auto run = train<double>(family.toStdString(), p, halfMomentum, {.inputs = {1, 2}});
    const double tolerance = steps == int(PredictionSteps::Code) ? 1e-10 : 1e-12;
    for (int stage = 0; stage < 3; ++stage) {
        const auto expected = weights.mid(6 * stage, 6);
        QVERIFY(agrees(run.weights[size_t(stage)], {expected.begin(), expected.end()}, tolerance));
    }
}

void tst_weightsequences::threeStageLosses()
{
    const ToyModel model{.inputs = {1, 2}};
    const auto losses = [&](const char* family) {
        return train<double>(family, test::sized(3, 6), halfMomentum, model).losses;
    };
    const std::vector<double> vanilla{.3828125,      .271089553833, .357194267563,
                                      .179463193845, .260696368902, .026665935148};
    const std::vector<double> pipeOptim{.3828125,      .271089553833, .350442876239,
                                        .130027811178, .196802773646, .000686205454};
    const auto seenVanilla = losses("async-1f1b"), seenPipeOptim = losses("pipeoptim");
    for (std::size_t q = 0; q < 6; ++q) {
        QVERIFY(std::abs(seenVanilla[q] - vanilla[q]) < 1e-11);
        QVERIFY(std::abs(seenPipeOptim[q] - pipeOptim[q]) < 1e-11);
    }
    // One microbatch after the other, with a flush behind each: all stages go the same way.
    std::vector<std::string> lanes(3);
    for (int m = 0; m < 6; ++m)
        for (std::size_t stage = 0; stage < 3; ++stage)
            for (const char* op : {"F", "B", "U"})
                lanes[stage] += op + std::to_string(stage) + "." + std::to_string(m) + " ";
    const Program program = compile(test::schedule(6, {0, 1, 2}, lanes), test::unitCosts(3));
    const auto sequential = trainToy<double>(program, Optimizer::SgdMomentum, halfMomentum, model);
    for (const auto& stage : sequential.weights)
        QVERIFY(agrees(stage, {.52734375, .5901474594, .6561358401, .7359536584, .8165785597, .8420563559}, 1e-10));
}

void tst_weightsequences::oneWeightWithALag()
{
    const ToyModel model{.kind = ToyModel::Kind::Quadratic, .start = 1};
    const auto first = [&](const char* family, int lag) {
        return train<double>(family, test::sized(lag + 1, 6), halfMomentum, model).weights[0];
    };
    QVERIFY(agrees(first("pipedream", 0), {.875, .703125, .529296875, .3762207031, .2526550293, .1592903137}, 1e-10));
    QVERIFY(agrees(first("pipedream", 1), {.875, .6875, .484375, .296875, .142578125, .0283203125}, 0));
    QVERIFY(agrees(first("pipeoptim", 1), {.875, .6875, .5, .34375, .2265625, .14453125}, 0));
    QVERIFY(agrees(first("pipedream", 3), {.875, .6875, .46875, .234375, .0078125, -.19140625}, 0));
    QVERIFY(agrees(first("pipeoptim", 3), {.875, .6875, .46875, .234375, .0546875, -.05078125}, 0));
}

void tst_weightsequences::predictionsAreExactWhereTheDirectionStays()
{
    // A constant gradient with the momentum at its fixed point: 1 / (1 - u). Dampening u reaches it at once.
    const ToyModel slope{.kind = ToyModel::Kind::Slope, .start = 1};
    const ToyOptimizer settled{.learningRate = 0.125, .momentum = 0.5, .dampening = 0.5};
    const ToyOptimizer adam{.learningRate = 0.125, .beta1 = 0.5, .beta2 = 0.75, .epsilon = 0};
    for (const Optimizer rule : {Optimizer::Adam, Optimizer::AdamW, Optimizer::SgdMomentum}) {
        FamilyParameters p = test::sized(4, 64);
        p.optimizer = rule;
        const Program program = programOf("pipeoptim", p);
        const auto run = trainToy<double>(program, rule, rule == Optimizer::SgdMomentum ? settled : adam, slope);
        for (TaskId t = 0; t < program.tasks.size(); ++t) {
            const WeightUse& use = program.weights[t];
            if (program.tasks[t].kind != TaskKind::Compute || program.tasks[t].op != Op::F || use.version < 55)
                continue;
            // The loss of a slope is the sum of the weights that the forwards saw.
            QCOMPARE(use.steps, 3 - program.tasks[t].stage);
            QCOMPARE(use.version + use.steps, use.update);
        }
        double expected = 0;
        for (const auto& stage : run.weights)
            expected += stage[60];
        QVERIFY(std::abs(run.losses[60] - expected) < 1e-12);
    }
}

void tst_weightsequences::oneDeviceIsPlainTraining()
{
    const ToyModel model{.inputs = {1, 2, 0.5}};
    const auto reference = train<float>("async-1f1b", test::sized(1, 8), halfMomentum, model).weights;
    for (const char* family : {"pipedream", "pipedream-2bw", "spectrain", "pipeoptim"})
        QCOMPARE(train<float>(family, test::sized(1, 8), halfMomentum, model).weights, reference);
    float w = 0.5f, v = 0;
    for (std::size_t q = 0; q < 8; ++q) {
        const float x = std::vector<float>{1, 2, 0.5f}[q % 3];
        v = 0.5f * v + (w * x - 1) * x;
        w -= 0.125f * v;
        QCOMPARE(reference[0][q + 1], w);
    }
}

void tst_weightsequences::stabilityLimits()
{
    const auto near = [](double limit, double expected) { return std::abs(limit - expected) <= 0.026 * expected; };
    QVERIFY(near(largestStableRate(0.9, 0, 0), 3.80));
    QVERIFY(near(largestStableRate(0.9, 1, 0), 0.098) && near(largestStableRate(0.9, 1, 1), 0.268));
    QVERIFY(near(largestStableRate(0.9, 2, 0), 0.050) && near(largestStableRate(0.9, 2, 2), 0.120));
    QVERIFY(near(largestStableRate(0.9, 3, 0), 0.034) && near(largestStableRate(0.9, 3, 3), 0.072));
    QVERIFY(near(largestStableRate(0, 0, 0), 2.0));
    QVERIFY(near(largestStableRate(0, 1, 0), 0.998) && near(largestStableRate(0, 1, 1), 0.617));
    QVERIFY(near(largestStableRate(0, 2, 0), 0.616) && near(largestStableRate(0, 2, 2), 0.371));
    QVERIFY(near(largestStableRate(0, 3, 0), 0.443) && near(largestStableRate(0, 3, 3), 0.265));
    // In closed form where there is one: 2 (1 + u), and for plain SGD with a lag 2 sin(pi / (4 s + 2)).
    QVERIFY(std::abs(largestStableRate(0.6, 0, 0) - 3.2) < 1e-8);
    for (int s = 1; s < 8; ++s)
        QVERIFY(std::abs(largestStableRate(0, s, 0) - 2 * std::sin(M_PI / (4 * s + 2))) < 1e-8);
    // And by running the recurrence itself, just inside and just outside.
    for (const double u : {0.0, 0.5, 0.9})
        for (const int s : {1, 2, 3}) {
            const double limit = largestStableRate(u, s, s);
            for (const double factor : {0.97, 1.03}) {
                const ToyOptimizer optimizer{.learningRate = factor * limit, .momentum = u};
                const auto run = train<double>("pipeoptim", test::sized(s + 1, 4000), optimizer,
                                               {.kind = ToyModel::Kind::Quadratic, .start = 1});
                QCOMPARE(std::abs(run.weights[0].back()) < 1, factor < 1);
            }
        }
}

void tst_weightsequences::everyFamilyThatUpdatesAmidTheRunCanBeCompared()
{
    for (const Family& family : families()) {
        if (!family.updates || family.name == "dp") // its weights are those of 1F1B with flush, which is compared
            continue;
        const auto policies = comparablePolicies();
        QVERIFY2(std::any_of(policies.begin(), policies.end(), [&](const auto& p) { return p.family == family.name; }),
                 family.name.data());
    }
}

PIPEWRIGHT_TEST(tst_weightsequences, NoApplication)
#include "tst_weightsequences.moc"
