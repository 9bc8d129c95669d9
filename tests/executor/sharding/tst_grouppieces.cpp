// SPDX-License-Identifier: GPL-3.0-or-later
// Groups that train pieces of sequences: gradients against one device that has the whole model, and every member's
// memory against what was planned.
#include "core/design/stageplans.h"
#include "executor/sharding/trainedgroups.h"
#include "sanitized.h"
#include "testmain.h"

#include <QTest>

using namespace pipewright;
using namespace pipewright::test;
using namespace pipewright::sharding;

class GroupPiecesTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void piecesOfSequencesTrain_data()
    {
        QTest::addColumn<QString>("model");
        QTest::addColumn<QString>("plan");
        QTest::addColumn<bool>("narrow");
        int row = 0;
        for (const auto& [name, shape] : groupModels())
            for (const char* plan : {"hap", "megatron", "data-parallel"})
                for (const bool narrow : {false, true})
                    if (mayBeCut(shape) && !leftOut(row++))
                        QTest::addRow("%s, %s%s", name, plan, narrow ? ", bf16" : "")
                            << QString(name) << QString(plan) << narrow;
    }
    void piecesOfSequencesTrain()
    {
        QFETCH(QString, model);
        QFETCH(QString, plan);
        QFETCH(bool, narrow);
        ModelShape shape = inTwelve(groupModel(model));
        shape.dataType = narrow ? DataType::Bf16 : shape.dataType;
        const Design design = withStrategy(groupDesign("seq1f1b", {{1e9, 5e8}, {1e9, 1e9}}, 2, shape),
                                           *strategyNamed(plan.toStdString()));
        QCOMPARE(design.schedule.sequencePieces, 4);
        const Run run = trained(design);
        narrow ? verifyNarrow(run) : verify(run);
    }

    void piecesTrainAlikeHoweverTheirBlocksRun_data()
    {
        QTest::addColumn<QString>("model");
        QTest::addColumn<bool>("narrow");
        QTest::newRow("gemma") << "gemma" << false;
        QTest::newRow("sinks, bf16") << "sinks" << true; // whose gradients W takes over from I
    }
    void piecesTrainAlikeHoweverTheirBlocksRun()
    {
        QFETCH(QString, model);
        QFETCH(bool, narrow);
        ModelShape shape = inTwelve(groupModel(model));
        shape.dataType = narrow ? DataType::Bf16 : DataType::Fp32;
        const Design plain = groupDesign("seq1f1b", {{1e9, 5e8}, {1e9, 1e9}}, 2, shape);
        const Design again = withRecompute(plain, std::vector<Recompute>(2, Recompute::Block));
        Design halves = plain; // the weight gradients of earlier pieces come first
        halves.schedule.backward = BackwardStyle::Split;
        halves.schedule.firstStageMaySplit = true;
        for (std::vector<Block>& lane : halves.schedule.order) {
            std::vector<Block> behind;
            for (Block& block : lane)
                if (block.op == Op::B) {
                    block.op = Op::I;
                    behind.push_back(block);
                    behind.back().op = Op::W;
                }
            lane.insert(lane.end(), behind.rbegin(), behind.rend());
        }
        const Run whole = trained(plain);
        const auto check = [&](const Design& design) {
            QVERIFY(whyNoMembers(design).empty());
            const Run run = trained(design);
            QCOMPARE(run.peak, run.planned);
            for (const auto& [name, gradient] : whole.gradients)
                QVERIFY2(test::errorOf(run.gradients.at(name), gradient) < 1e-6, name.c_str());
        };
        for (const Design& design : {again, halves, offloading(plain, 1e12), offloading(again, 1e12)})
            check(design);
        for (const int level : {0, 1}) {
            Design copies = copiesOf(plain, 2);
            copies.schedule.zero.level = level;
            const Run run = trained(copies);
            narrow ? verifyNarrow(run) : verify(run);
        }
    }
};

PIPEWRIGHT_TEST(GroupPiecesTest, NoApplication)
#include "tst_grouppieces.moc"
