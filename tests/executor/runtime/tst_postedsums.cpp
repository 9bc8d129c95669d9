// SPDX-License-Identifier: GPL-3.0-or-later
// Where a plan posts the sums of two replicas' gradients.
#include "core/program/compile.h"
#include "executor/run/trainabledesign.h"
#include "executor/runtime/plan.h"
#include "executor/runtime/timedwork.h"
#include "makers/models.h"
#include "testmain.h"

#include <QTest>

using namespace pipewright;

class TestPostedSums : public QObject {
    Q_OBJECT

private slots:
    /// So that a stage's gradients are added up while the device still works on another stage.
    void sumsArePostedRightBehindTheLastBlockOfTheirStage()
    {
        const Design design = trainableDesign(test::tinyGpt("chimera", 4, 8));
        const Program program = compile(design.schedule, design.costs, design.dataflow);
        std::vector<std::vector<BufferLife>> lives;
        for (int d = 0; d < 4; ++d)
            lives.push_back(lifetimes(program, d));
        TimedWork work({}, TimedWork::Pace::Virtual);
        const Plan plan = planRun(program, std::vector<Region>(program.buffers.size()), lives, work);
        int beside = 0, posted = 0, late = 0; // late: behind another sum of the same values
        for (std::size_t d = 0; d < plan.devices.size(); ++d) {
            const DevicePlan& device = plan.devices[d];
            std::size_t lastBlock = 0;
            for (std::size_t i = 0; i < device.instructions.size(); ++i)
                if (device.instructions[i].kind == InstructionKind::Compute)
                    lastBlock = i;
            for (std::size_t i = 0; i < device.instructions.size(); ++i) {
                late += device.instructions[i].postsSum;
                for (auto p = device.instructions[i].posts.begin; p < device.instructions[i].posts.end; ++p) {
                    const TaskId sum = plan.sums[device.posts[p]].task;
                    const auto& [root, other] = plan.reductions.at(sum);
                    const Task& block = program.tasks[device.instructions[i].task];
                    const Buffer& own = program.tasks[sum].device == int(d) ? root.description : other.description;
                    QCOMPARE(int(block.stage), int(own.stage));
                    for (std::size_t later = i + 1; later < device.instructions.size(); ++later)
                        if (device.instructions[later].kind == InstructionKind::Compute) {
                            const Task& after = program.tasks[device.instructions[later].task];
                            QVERIFY(after.stage != own.stage || after.replica != own.replica);
                        }
                    ++posted;
                    beside += i < lastBlock;
                }
            }
        }
        QCOMPARE(posted + late, 2 * int(plan.sums.size()));
        QVERIFY2(beside >= 4, qPrintable(QString("%1 of %2").arg(beside).arg(posted)));
    }
};

PIPEWRIGHT_TEST(TestPostedSums, NoApplication)
#include "tst_postedsums.moc"
