// SPDX-License-Identifier: GPL-3.0-or-later
// JaxPP's schedule classes: their tasks, and where JaxPP runs otherwise than is drawn.
#include "core/exchange/exampleexports.h"
#include "core/exchange/jaxpp.h"
#include "core/families/family.h"
#include "testmain.h"

#include <QDir>
#include <QFile>
#include <QProcess>
#include <QStandardPaths>
#include <QTemporaryDir>
#include <QTest>

#include <algorithm>

using namespace pipewright;
using namespace pipewright::test;

class TestJaxpp : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void jaxppListsTheTasksOfEveryActor()
    {
        const QString text =
            textOf(designOf(schedule(2, {0, 1}, {"F0.0 F0.1 B0.0 B0.1", "F1.0 B1.0 F1.1 B1.1"})), "jaxpp");
        QVERIFY(text.contains("class PipewrightZbH1On4(BaseSchedule):"));
        QVERIFY(text.contains("is_partial_bwd: bool = field(default=False, init=False)"));
        QVERIFY(text.contains("        \"F0.0 F0.1 B0.0 B0.1 \"\n"));
        QVERIFY(text.contains("        \"F1.0 B1.0 F1.1 B1.1 \"\n"));
        QVERIFY(text.contains("ACTOR_OF_STAGE = (0, 1,)"));
    }

    void jaxppGetsBothHalvesOfStageZeroTogether()
    {
        const Design design = designOf(
            schedule(2, {0, 1}, {"F0.0 I0.0 F0.1 W0.0 I0.1 W0.1", "F1.0 B1.0 F1.1 I1.1 W1.1"}, BackwardStyle::Split));
        Design mayBeSplit = design;
        mayBeSplit.schedule.firstStageMaySplit = true;
        const ExportedText exported = jaxppSchedule(mayBeSplit);
        const QString text = QString::fromStdString(exported.text);
        QVERIFY2(text.contains("\"F0.0 F0.1 I0.0 W0.0 I0.1 W0.1 \""), qPrintable(text));
        QVERIFY2(text.contains("\"F1.0 I1.0 W1.0 F1.1 I1.1 W1.1 \""), qPrintable(text));
        QVERIFY(text.contains("TaskType.BWD_I"));
        QCOMPARE(exported.diagnostics.size(), std::size_t{2});
        QVERIFY(exported.diagnostics[1].what.starts_with("JaxPP runs 1 full backwards as two tasks"));
        QCOMPARE(
            QString::fromStdString(exported.diagnostics[0].what),
            QString("JaxPP runs it in another order than the design: 1 input gradients of stage 0 are put off until "
                    "their weight gradients (I0.0 runs before F0.1 in the design, and directly before W0.0 in "
                    "JaxPP)"));
    }

    void whichFamiliesJaxppRunsOtherwiseAndHowIsSaid_data()
    {
        QTest::addColumn<bool>("order");
        QTest::addColumn<bool>("halves");
        for (const char* family : {"1f1b", "gpipe", "interleaved-1f1b", "zb-h1", "zb-h2", "zb-v", "1f1b-v"})
            QTest::newRow(family) << false << false;
        for (const char* family : {"v-half", "v-min", "v-zb"})
            QTest::newRow(family) << true << false;
        QTest::newRow("dualpipe-v") << false << true;
    }
    void whichFamiliesJaxppRunsOtherwiseAndHowIsSaid()
    {
        QFETCH(bool, order);
        QFETCH(bool, halves);
        const Design design = exampleDesign(QTest::currentDataTag(), 4, 8);
        QCOMPARE(warns(design, "jaxpp", "in another order than the design"), order);
        QCOMPARE(warns(design, "jaxpp", "full backwards as two tasks"), halves);
    }

    void jaxppFusesWhatOverlaps()
    {
        Design design = designOf(schedule(
            3, {0, 1}, {"F0.0 F0.1 F0.2 I0.0 W0.0 I0.1 W0.1 I0.2 W0.2", "F1.0 B1.0 F1.1 I1.1 W1.1 F1.2 I1.2 W1.2"},
            BackwardStyle::Split));
        design.schedule.overlaps = {{{Op::F, 0, 2}, {Op::I, 0, 0}}, {{Op::B, 1, 0}, {Op::F, 1, 1}}};
        const ExportedText exported = jaxppSchedule(design);
        QCOMPARE(exported.diagnostics.size(), std::size_t{1}); // the two halves of B1.0
        const QString text = QString::fromStdString(exported.text);
        QVERIFY2(text.contains("\"F1.0 I1.0&W1.0&F1.1 I1.1 W1.1 F1.2 I1.2 W1.2 \""),
                 qPrintable(text)); // all three tasks of the pair
        QVERIFY2(text.contains("\"F0.0 F0.1 F0.2&I0.0&W0.0 I0.1 W0.1 I0.2 W0.2 \""),
                 qPrintable(text)); // both halves of stage 0
        QVERIFY(text.contains("import BaseSchedule, FusedTask, Task, TaskType"));
        QVERIFY(!textOf(exampleDesign("zb-h1", 2, 4), "jaxpp").contains("Fused")); // older releases have no such class
    }

    void generatedPythonParsesAndGivesTheTasks()
    {
        const QString python = QStandardPaths::findExecutable("python3");
        if (python.isEmpty())
            QSKIP("python3 is not installed");
        QTemporaryDir folder;
        const auto write = [&](const QString& name, const QByteArray& content) {
            QFile file(folder.filePath(name));
            QVERIFY(file.open(QIODevice::WriteOnly) && file.write(content) == content.size());
        };
        // What the file needs of JaxPP, so that it can be run here.
        QVERIFY(QDir(folder.path()).mkpath("jaxpp"));
        write("jaxpp/__init__.py", "");
        write("jaxpp/schedules.py", "from dataclasses import dataclass, field\nfrom enum import Enum\n"
                                    "class TaskType(Enum):\n    FWD = 1\n    BWD = 2\n    BWD_I = 3\n    BWD_W = 4\n"
                                    "@dataclass(frozen=True)\nclass Task:\n    stage_id: int\n    mubatch_idx: int\n   "
                                    " ty: TaskType\n    latency: int\n"
                                    "    @classmethod\n    def make(cls, stage_id, mubatch_idx, ty, latency=1):\n      "
                                    "  return cls(stage_id, mubatch_idx, ty, latency)\n"
                                    "class FusedTask(tuple):\n    pass\n"
                                    "@dataclass(eq=True, frozen=True)\nclass BaseSchedule:\n    num_stages: int\n"
                                    "    is_partial_bwd: bool = field(default=False, init=False)\n");
        for (const Family& family : families()) {
            FamilyParameters parameters;
            if (hasErrors(family.check(parameters)))
                continue;
            Design design = designOf(makeSchedule(family.name, parameters));
            design.name = "plan";
            if (design.schedule.replicas() > 1)
                continue; // JaxPP has no word for a second replica
            write("plan.py", jaxppSchedule(design).text.c_str());
            QProcess run;
            run.setWorkingDirectory(folder.path());
            run.start(python, {"-c", "import py_compile; py_compile.compile('plan.py', doraise=True)\n"
                                     "from plan import MICROBATCHES, PipewrightPlan, Task\ns = PipewrightPlan()\nt = "
                                     "s.tasks(MICROBATCHES)\n"
                                     "n = sum(type(u) is not Task for l in t for u in l)\n"
                                     "t = [[x for u in l for x in ((u,) if type(u) is Task else u)] for l in t]\n"
                                     "assert all(s.get_mpmd_idx(x.stage_id) == a for a, l in enumerate(t) for x in l)\n"
                                     "print(len(t), s.num_stages, sum(map(len, t)), n)"});
            QVERIFY(run.waitForFinished());
            const QString out = run.readAllStandardOutput().trimmed();
            QVERIFY2(run.exitCode() == 0, run.readAllStandardError().constData());
            const Schedule& s = design.schedule;
            const bool split = std::any_of(s.order.begin(), s.order.end(), [](const std::vector<Block>& blocks) {
                return std::any_of(blocks.begin(), blocks.end(), [](const Block& b) { return b.op == Op::I; });
            });
            QCOMPARE(out, QString("%1 %2 %3 %4")
                              .arg(s.devices())
                              .arg(s.stages())
                              .arg(s.stages() * s.microbatches * (split ? 3 : 2))
                              .arg(s.overlaps.size()));
        }
    }
};

PIPEWRIGHT_TEST(TestJaxpp, NoApplication)
#include "tst_jaxpp.moc"
