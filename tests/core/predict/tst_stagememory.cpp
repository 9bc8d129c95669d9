// SPDX-License-Identifier: GPL-3.0-or-later
// What fills a group's fullest member adds up to its peak.
#include "core/predict/stagememory.h"
#include "core/program/compile.h"
#include "makers/groups.h"
#include "testmain.h"

#include <QTest>

using namespace pipewright;

class TestStageMemory : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void whatFillsTheFullestMemberAddsUpToItsPeak_data()
    {
        QTest::addColumn<QString>("family");
        QTest::addColumn<int>("copies");
        QTest::newRow("split backward") << "zb-h1" << 1;
        QTest::newRow("two stages on each group") << "interleaved-1f1b" << 1;
        QTest::newRow("two pipelines that share the optimizer's state") << "gpipe" << 2;
    }
    void whatFillsTheFullestMemberAddsUpToItsPeak()
    {
        QFETCH(QString, family);
        QFETCH(int, copies);
        Design design =
            test::copiesOf(test::groupDesign(family.toStdString(), {{1e9, 5e8}, {2e9, 1e9, 1e9}}, 4), copies);
        design.schedule.zero.level = copies > 1 ? 1 : 0;
        const GroupStages stages = groupStages(design);
        const Prediction members = predictMembers(memberProgram(compile(design.schedule, design.costs, design.dataflow),
                                                                stages, design.costs, design.schedule.transferOrder));
        const MemoryBreakdown breakdown = memberBreakdown(design, members, stages);
        QCOMPARE(breakdown.devices.size(), stages.membersOfDevice.size());
        for (const DeviceMemory& device : breakdown.devices) {
            const int fullest = fullestMember(members.program, stages, device.device);
            QCOMPARE(device.peak, members.program.devices[static_cast<std::size_t>(fullest)].peakBytes);
            QVERIFY(device.activations > 0);
            QCOMPARE(device.weights + device.gradients + device.optimizer + device.activations + device.buffers
                         + device.workspace,
                     device.peak);
        }
    }
};

PIPEWRIGHT_TEST(TestStageMemory, NoApplication)
#include "tst_stagememory.moc"
