// SPDX-License-Identifier: GPL-3.0-or-later
// Which experts the tokens of groups visit: the reference follows the run where rounding decided, and what rounding
// does not explain is an error.
#include "core/design/stageplans.h"
#include "executor/run/gradientcheck.h"
#include "executor/sharding/trainedgroups.h"
#include "testmain.h"

#include <QTest>

using namespace pipewright;
using namespace pipewright::test;

namespace {

constexpr int microbatches = 4;

Design expertDesign(const char* plan, const ModelShape& shape = groupExperts())
{
    return withStrategy(groupDesign("zb-h1", {{1e9, 5e8}, {1e9, 1e9}}, microbatches, shape),
                        *sharding::strategyNamed(plan));
}

/// Choices of a token in a layer that a step makes.
std::int64_t choicesOfStep(const ModelShape& shape)
{
    return microbatches * shape.layers * shape.tokens();
}

GradientCheck checked(const Run& run, const ReferenceStep& reference)
{
    return checkGroupGradients(run.gradients, reference, fp32GradientBound, DataType::Fp32);
}

Diagnostics said(const GradientCheck& check)
{
    Diagnostics notes;
    noteOfGradients(check, notes);
    return notes;
}

/// Two experts of which no token prefers one by more than its rounding.
void makeAlike(WholeTensors& values)
{
    for (auto& [name, tensor] : values)
        if (name.ends_with("router.weight")) {
            const std::size_t columns = tensor.elements() / std::size_t(tensor.shape.front());
            std::copy_n(tensor.data.begin(), columns, tensor.data.begin() + std::ptrdiff_t(columns));
            tensor.data[columns] *= 1 + 0x1p-14f;
        }
}

/// As if the tokens that prefer the one preferred the other.
void swapAlike(WholeTensors& values)
{
    for (auto& [name, tensor] : values)
        if (name.ends_with("router.weight")) {
            const auto columns = std::ptrdiff_t(tensor.elements()) / tensor.shape.front();
            std::swap_ranges(tensor.data.begin(), tensor.data.begin() + columns, tensor.data.begin() + columns);
        }
}

} // namespace

class GroupRoutingTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void everyPlanKeepsAllChoices_data()
    {
        QTest::addColumn<QByteArray>("plan");
        for (const sharding::StrategyFacts& facts : sharding::strategies())
            QTest::newRow(facts.name.data()) << QByteArray(facts.name.data());
    }
    void everyPlanKeepsAllChoices()
    {
        QFETCH(QByteArray, plan);
        const Design design = expertDesign(plan.constData());
        const Run run = trained(design, 1);
        QCOMPARE(run.reference.routing.tokens, choicesOfStep(design.workload->shape));
        QCOMPARE(run.reference.routing.unexplained, 0);
        QVERIFY(checked(run, run.reference).holds());
    }

    void aTokenBetweenTwoExpertsIsFollowed_data()
    {
        QTest::addColumn<QByteArray>("plan");
        for (const char* plan : {"data-parallel", "megatron"}) // members route some of the tokens, or all of them
            QTest::newRow(plan) << QByteArray(plan);
    }
    void aTokenBetweenTwoExpertsIsFollowed()
    {
        QFETCH(QByteArray, plan);
        const Design design = expertDesign(plan.constData());
        WholeTensors values = initialParameters(*design.workload, 3);
        makeAlike(values);
        Planted planted;
        planted.start = [&](const ParameterLayout& layout, std::span<float> parameters) {
            const std::vector<float> flat = inLayout(values, design.workload->shape, layout);
            std::copy(flat.begin(), flat.end(), parameters.begin());
        };
        const Run run = trained(design, 1, planted);
        QCOMPARE(run.reference.routing.unexplained, 0); // some are decided by the order of sums already
        WholeTensors other = run.parameters;
        swapAlike(other);
        // A reference of its own choices has other gradients by far.
        const GradientCheck alone = checked(run, referenceStep(design, other, run.data));
        QVERIFY2(alone.maxRelativeError > 100 * fp32GradientBound, qPrintable(QString::number(alone.maxRelativeError)));
        const GradientCheck check = checked(run, referenceStep(design, other, run.data, &run.followed));
        QVERIFY2(check.holds(), qPrintable(QString("%1 %2").arg(check.worst.c_str()).arg(check.maxRelativeError)));
        QCOMPARE(check.routing.tokens, choicesOfStep(design.workload->shape));
        QVERIFY(check.routing.otherwise > 0 && check.routing.otherwise < check.routing.tokens);
        QCOMPARE(check.routing.unexplained, 0);
        QVERIFY(said(check).size() == 1 && said(check)[0].severity == Severity::Note);
    }

    void aChoiceThatRoundingDoesNotExplainIsAnError_data()
    {
        QTest::addColumn<int>("expert");
        QTest::newRow("another expert") << 0;
        QTest::newRow("an expert that there is not") << 4;
    }
    void aChoiceThatRoundingDoesNotExplainIsAnError()
    {
        QFETCH(int, expert);
        const Design design = expertDesign("megatron");
        Run run = trained(design, 1);
        std::vector<std::int32_t>& choices = run.followed.choices[1].at("2.route");
        std::int32_t* const ofToken = &choices[2 * 5];
        while (expert < 4 && (expert == ofToken[0] || expert == ofToken[1]))
            ++expert;
        ofToken[1] = expert;
        const GradientCheck check = checked(run, referenceStep(design, run.parameters, run.data, &run.followed));
        QCOMPARE(check.routing.unexplained, 1);
        QCOMPARE(check.routing.first, std::string("2.route, microbatch 1, token 5"));
        QVERIFY(!check.holds());
        const Diagnostics notes = said(check);
        QVERIFY(!notes.empty() && notes[0].severity == Severity::Error && notes[0].where == check.routing.first);
    }

    /// Gradients of such a token are no single device's.
    void membersThatRouteATokenApartAreAnError()
    {
        Planted planted;
        planted.choices = [](KeptChoices& choices, const Program& program) {
            const std::vector<TaskId> tasks = choices.here();
            const auto second = std::find_if(tasks.begin(), tasks.end(), [&](TaskId t) {
                return program.tasks[t].device == 1 && program.tasks[t].microbatch() == 2;
            });
            QVERIFY(second != tasks.end());
            const std::span<std::int32_t> kept = choices.of(*second);
            QCOMPARE(kept.size(), std::size_t(2 * groupExperts().tokens() * 2)); // all tokens, in two layers
            std::swap(kept[0], kept[1]);                                         // the same experts
            const std::span<std::int32_t> ofToken = kept.subspan(2 * 3, 2);
            std::int32_t other = 0;
            while (other == ofToken[0] || other == ofToken[1])
                ++other;
            ofToken[0] = other;
        };
        const Run run = trained(expertDesign("megatron"), 1, planted);
        const std::vector<std::int32_t>& choices = run.followed.choices[2].at("0.route");
        QVERIFY(choices[0] >= 0 && choices[2 * 3] == -1 && choices[2 * 3 + 1] == -1 && choices[2 * 4] >= 0);
        const GradientCheck check = checked(run, run.reference);
        QCOMPARE(check.routing.unexplained, 1);
        QVERIFY(!check.holds());
    }
};

PIPEWRIGHT_TEST(GroupRoutingTest, NoApplication)
#include "tst_grouprouting.moc"
