// SPDX-License-Identifier: GPL-3.0-or-later
// Plans of stages that are asked for by name, stated in a design and its file, and refused where they do not fit.
#include "core/base/diagnostic.h"
#include "core/design/groupstages.h"
#include "core/design/redesign.h"
#include "core/design/stagecosts.h"
#include "core/design/stageplans.h"
#include "core/files/designfile.h"
#include "core/sharding/sharedstage.h"
#include "makers/groups.h"
#include "testmain.h"

#include <QTest>

#include <algorithm>

using namespace pipewright;
using namespace pipewright::test;
using namespace pipewright::sharding;

namespace {

SharedStage planned(Strategy strategy, const ModelShape& shape = groupShape(), double bandwidth = 1e9)
{
    SharedStages known;
    return known.plan(workloadOf(shape), 0, 3, groupDevice({1e9, 5e8}, bandwidth), {strategy, {}, {}});
}

/// "projection: Gather(2) -> Reduce" for a computation, "add1 all_reduce" for a communication of computed tensors.
QStringList steps(const SharedStage& stage, const char* tensor)
{
    QStringList found;
    for (const std::string& line : programLines(stage.plan.program, stage.graph))
        if (const QString text = QString::fromStdString(line); text.startsWith(tensor))
            found << text;
    return found;
}

Design twoGroups(const char* family = "1f1b")
{
    return groupDesign(family, {{1e9, 5e8}, {1e9, 5e8}}, 4, groupShape(6));
}

/// The file of a design that states its plans, with this text in place of another.
QString faultOf(const QString& from, const QString& to)
{
    const Design design = withStrategy(twoGroups(), Strategy::Megatron);
    QString text = QString::fromStdString(designToJson(design));
    if (!text.contains(from))
        return "not in the file: " + from;
    text.replace(text.indexOf(from), from.size(), to);
    try {
        (void)designFromJson(text.toStdString(), "design.json");
    } catch (const Error& error) {
        return QString::fromStdString(toString(error.diagnostics()));
    }
    return "nothing";
}

} // namespace

class StagePlansTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void everyStrategyHasItsNameAndItsPlan_data()
    {
        QTest::addColumn<int>("index");
        for (const StrategyFacts& facts : strategies())
            QTest::newRow(facts.name.data()) << static_cast<int>(facts.strategy);
    }
    void everyStrategyHasItsNameAndItsPlan()
    {
        QFETCH(int, index);
        const auto strategy = static_cast<Strategy>(index);
        QVERIFY(strategyNamed(nameOf(strategy)) == strategy);
        const ShardingPlan best = planned(Strategy::Hap).plan;
        for (const ModelShape& shape : {groupShape(), groupExperts()}) {
            const SharedStage stage = planned(strategy, shape);
            switch (factsOf(strategy).shares) {
            case ShareChoice::Even: QCOMPARE(stage.plan.ratios.front(), (std::vector<double>{0.5, 0.5})); break;
            case ShareChoice::ByRate: QVERIFY(std::abs(stage.plan.ratios.front().front() - 2. / 3) < 1e-9); break;
            case ShareChoice::Found: break;
            }
            // As it is written, it is read, and costs and keeps as much.
            const StatedPlan stated = statedPlan(stage.plan, stage.graph, strategy);
            const ShardingPlan again = planOf(stated, stage.graph, stage.machine, {});
            QCOMPARE(programLines(again.program, stage.graph), stated.program);
            QCOMPARE(again.cost, stage.plan.cost);
            QCOMPARE(again.memory, stage.plan.memory);
        }
        QVERIFY(planned(strategy).plan.cost >= best.cost * (1 - 1e-9));
    }

    void dataParallelismCutsTheBatchAndSumsGradients()
    {
        const SharedStage stage = planned(Strategy::DataParallelEven);
        QCOMPARE(steps(stage, "0.query: "), (QStringList{"0.query: [*] I I -> [*] | Gather(0) Identity Identity | "
                                                         "Gather(0)"}));
        QCOMPARE(steps(stage, "0.query.weight"), (QStringList{"0.query.weight: load |  | Identity"}));
    }

    void deepSpeedKeepsParametersInPiecesAndExpertsOnMembers()
    {
        const SharedStage stage = planned(Strategy::DeepSpeed, groupExperts());
        QVERIFY(steps(stage, "0.query.weight: load").front().endsWith("Gather(0)")
                || steps(stage, "0.query.weight: load").front().endsWith("Gather(1)"));
        QVERIFY(steps(stage, "0.query.weight: all_gather").size() == 1);
        QVERIFY(steps(stage, "0.query: ").front().endsWith("| Gather(0)"));
        QCOMPARE(steps(stage, "0.experts.up: "),
                 (QStringList{"0.experts.up: [e] [e] -> [e] | Gather(1) Gather(0) | Gather(1)"}));
        QCOMPARE(steps(stage, "0.dispatch: all_to_all").size(), 1);
        QVERIFY(memoryOf(stage.plan.program, stage.plan.ratios)[0]
                < planned(Strategy::DataParallelEven, groupExperts()).plan.memory[0]);
    }

    void tagSumsFactorsWhereThatIsCheaper()
    {
        ModelShape shape = groupShape();
        shape.microbatchSize = 2;
        const auto factors = [](const SharedStage& stage) {
            return std::count_if(stage.plan.program.instructions.begin(), stage.plan.program.instructions.end(),
                                 [](const ShardingInstruction& one) {
                                     return one.computes()
                                            && sharingRules()[static_cast<std::size_t>(one.rule)].factors();
                                 });
        };
        shape.hidden = 512;
        shape.headSize = 128;
        shape.ffn = 1024;
        QVERIFY(factors(planned(Strategy::Tag, shape, 1e7)) > 0);
        QCOMPARE(factors(planned(Strategy::DataParallel, shape, 1e7)), 0);
    }

    void megatronCutsColumnsThenRows()
    {
        const SharedStage stage = planned(Strategy::Megatron);
        for (const char* column : {"0.query: ", "0.key: ", "0.value: ", "1.mlp.up: "})
            QVERIFY2(steps(stage, column).front().contains("| Identity Gather(0) Gather(0) | Gather(2)"), column);
        QVERIFY(steps(stage, "0.attention: ").front().endsWith("| Gather(2)"));
        for (const char* row : {"0.projection: ", "1.mlp.down: "})
            QVERIFY2(steps(stage, row).front().contains("[h] [h] 1 -> R | Gather(2) Gather(1) Identity | Reduce"), row);
        QCOMPARE(steps(stage, "0.projection: all_reduce").size(), 1);
        QVERIFY(steps(stage, "0.norm1: ").front().endsWith("| Identity"));
        QVERIFY(steps(stage, "embedding: I [v] -> R").size() == 1);
    }

    void sequenceParallelismCutsTokensBetweenTheMatrices()
    {
        const SharedStage stage = planned(Strategy::MegatronSequence);
        QVERIFY(steps(stage, "0.query: ").front().endsWith("| Gather(2)"));
        QCOMPARE(steps(stage, "0.norm1: all_gather").size(), 1);
        QCOMPARE(steps(stage, "0.projection: reduce_scatter").size(), 1);
        for (const char* between : {"0.norm1: [*]", "0.add1: [*]", "hand_over: [*]"})
            QVERIFY2(steps(stage, between).front().contains("Gather(1)"), between);
    }

    /// Sequence parallelism cuts tokens, and a row of features is none.
    void anMlpHasNoTokensToCut()
    {
        const Design design = groupDesign("1f1b", {{1e9, 5e8}, {1e9, 5e8}}, 4, groupMlp(6));
        (void)withStrategy(design, Strategy::Megatron);
        try {
            (void)withStrategy(design, Strategy::MegatronSequence);
            QFAIL("features were cut as if they were tokens");
        } catch (const Error& error) {
            const QString text = QString::fromStdString(toString(error.diagnostics()));
            QVERIFY2(text.contains("cuts the tokens of a sequence") && text.contains("use the plan megatron"),
                     qPrintable(text));
        }
    }

    void whatCannotBeDoneIsRefusedAndNotReplaced()
    {
        ModelShape shape = groupShape();
        shape.microbatchSize = 1;
        const Design single = groupDesign("1f1b", {{1e9, 5e8}, {1e9, 5e8}}, 4, shape);
        try {
            (void)withStrategy(single, Strategy::DataParallel);
            QFAIL("one sequence has no batch to cut");
        } catch (const Error& error) {
            QVERIFY2(QString(error.what()).contains("\"data-parallel\" has no way to compute"), error.what());
        }
        (void)withStrategy(single, Strategy::Megatron);
        QVERIFY_THROWS_EXCEPTION(Error, withStrategy(groupDesign("1f1b", {{1e9}, {1e9}}, 4), Strategy::Hap));
        QVERIFY_THROWS_EXCEPTION(
            Error, withStrategy(groupDesign("1f1b", {{1e9}, {1e9, 1e9}}, 4), Strategy::Hap, 0)); // a single device
        QVERIFY_THROWS_EXCEPTION(Error, withStrategy(twoGroups(), Strategy::Hap, 7));
    }

    void aDesignCostsAndRunsByTheStatedPlan()
    {
        const Design free = twoGroups();
        const Design even = withStrategy(free, Strategy::Even), megatron = withStrategy(free, Strategy::Megatron);
        QCOMPARE(even.plans.size(), std::size_t{2});
        QVERIFY(even.costs.stages[0].forward > free.costs.stages[0].forward);
        // What the synthesis finds and what is stated of it cost the same.
        const Design found = withStrategy(free, Strategy::Hap);
        QVERIFY(found.costs == free.costs);
        QVERIFY(!(found == free));
        const GroupStages stages = groupStages(megatron);
        QCOMPARE(programLines(stages.plans[1].plan.program, stages.plans[1].graph), megatron.plans[1].program);
        // The shares of one stage alone.
        StatedPlan plan = even.plans[1];
        plan.ratios = {0.75, 0.25};
        const Design dragged = withPlan(even, 1, plan);
        QVERIFY(dragged.costs.stages[0] == even.costs.stages[0]);
        QVERIFY(!(dragged.costs.stages[1] == even.costs.stages[1]));
        QCOMPARE(groupStages(dragged).plans[1].plan.ratios.front(), plan.ratios);
        QVERIFY(withPlan(dragged, 1, even.plans[1]) == even);
    }

    void measuredTimesFollowInProportion()
    {
        Design measured = twoGroups();
        const Design free = measured;
        measured.costs.source = "measured: run.db";
        for (StageCosts& stage : measured.costs.stages)
            stage.forward *= 3;
        const Design even = withStrategy(measured, Strategy::Even), formula = withStrategy(free, Strategy::Even);
        QVERIFY(std::abs(even.costs.stages[0].forward - 3 * formula.costs.stages[0].forward) <= 3);
        QVERIFY(even.costs.originOf(Op::F, 0) == CostOrigin::Estimated);
    }

    void aPlanStaysWithItsLayersAndItsStrategyWithTheRest()
    {
        const Design design = withStrategy(twoGroups(), Strategy::Megatron);
        std::vector<int> cut = design.layersPerStage;
        --cut[0], ++cut[1];
        const Design moved = withPartition(design, cut);
        QCOMPARE(moved.plans.size(), std::size_t{2});
        QVERIFY((moved.plans[0] == StatedPlan{Strategy::Megatron, {}, {}}));
        QVERIFY(groupStages(moved).plans[0].plan.program.instructions.size() > 10);
        QVERIFY(withPartition(moved, design.layersPerStage).costs == design.costs);
        Cluster cluster = design.cluster;
        cluster.devices[0] = groupDevice({1e9});
        const Design single = withCluster(design, cluster);
        QVERIFY(single.plans[0] == StatedPlan{});
        QVERIFY(single.plans[1] == design.plans[1]);
        cluster.devices[1] = groupDevice({1e9});
        QVERIFY(withCluster(design, cluster).plans.empty());
    }

    void theFileHoldsThePlan()
    {
        const Design design = withStrategy(twoGroups(), Strategy::MegatronSequence);
        const Design read = designFromJson(designToJson(design), "test");
        QVERIFY(read == design);
        QVERIFY(groupStages(read).stages[0].members == groupStages(design).stages[0].members);
        // A person may write less of it.
        Design brief = twoGroups();
        brief.plans = {{Strategy::DataParallel, {}, {}}, {Strategy::Hap, {0.5, 0.5}, {}}};
        QVERIFY(designFromJson(designToJson(brief), "test") == brief);
        QCOMPARE(groupStages(brief).plans[1].plan.ratios.front(), (std::vector<double>{0.5, 0.5}));
        QVERIFY(QString::fromStdString(designToJson(twoGroups())).indexOf("sharding") < 0);
    }

    void whatDoesNotFitIsRefusedWithItsPlace_data()
    {
        QTest::addColumn<QString>("from");
        QTest::addColumn<QString>("to");
        QTest::addColumn<QString>("said");
        QTest::newRow("strategy") << "\"megatron\""
                                  << "\"megatrom\""
                                  << "megatron";
        QTest::newRow("of another strategy") << "\"megatron\""
                                             << "\"data-parallel\""
                                             << "embedding.table has no \"load\"";
        QTest::newRow("stage") << "\"stages\": [0]"
                               << "\"stages\": [5]"
                               << "there is no stage 5";
        QTest::newRow("twice") << "\"stages\": [0]"
                               << "\"stages\": [0, 0]"
                               << "stage 0 has a plan already";
        QTest::newRow("of another stage") << "\"stages\": [0]"
                                          << "\"stages\": [1]"
                                          << "stage 1:";
        QTest::newRow("rule") << "I [o] [o] -> [o]"
                              << "I [q] [q] -> [q]"
                              << "cannot be computed by";
        QTest::newRow("tensor") << "\"0.query: "
                                << "\"0.question: "
                                << "the stage has no tensor \"0.question\"";
        QTest::newRow("an order that cannot be") << "\"0.query.weight: load |  | Gather(0)\""
                                                 << "\"0.query.weight: load |  | Identity\""
                                                 << "no line before makes 0.query.weight Gather(0)";
        QTest::newRow("a gradient that nobody sums") << "\"0.norm1.gain: load |  | Identity\""
                                                     << "\"0.norm1.gain: unreduced load |  | Identity\""
                                                     << "no line before makes 0.norm1.gain Identity";
        QTest::newRow("no instruction") << "\"0.query.weight: load |  | Gather(0)\""
                                        << "\"query\""
                                        << "\"query\" is no instruction of a plan";
        QTest::newRow("more layers than the model has") << "\"layers_per_stage\": ["
                                                        << "\"layers_per_stage\": [9"
                                                        << "the model has";
        QTest::newRow("no program") << "\"0.query.weight: load |  | Gather(0)\""
                                    << "3"
                                    << "an instruction is no text";
    }
    void whatDoesNotFitIsRefusedWithItsPlace()
    {
        QFETCH(QString, from);
        QFETCH(QString, to);
        QFETCH(QString, said);
        const QString fault = faultOf(from, to);
        QVERIFY2(fault.contains(said), qPrintable(fault));
        QVERIFY2(fault.startsWith("design.json:"), qPrintable(fault));
    }

    void sharesThatAreNoneAreRefused()
    {
        const Design design = withStrategy(twoGroups(), Strategy::Megatron);
        for (const std::vector<double>& shares :
             {std::vector<double>{0.5}, {0.5, 0.6}, {1.5, -0.5}, {0.3, 0.3, 0.4}, {}}) {
            StatedPlan plan = design.plans[0];
            plan.ratios = shares;
            QVERIFY_THROWS_EXCEPTION(Error, withPlan(design, 0, plan));
            Design wrong = design;
            wrong.plans[0] = plan;
            QVERIFY_THROWS_EXCEPTION(Error, designFromJson(designToJson(wrong), "test"));
        }
    }
};

PIPEWRIGHT_TEST(StagePlansTest, NoApplication)
#include "tst_stageplans.moc"
