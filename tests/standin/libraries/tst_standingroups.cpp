// SPDX-License-Identifier: GPL-3.0-or-later
// Pipelines whose stages are shared out among the members of groups, on stand-in GPUs: the real program with its
// plugin, a GPU or a slice of one for each member, collectives through NCCL or by copies.
#include "standin/libraries/standinmachine.h"
#include "testmain.h"
#include "testpaths.h"

#include <QTest>

using namespace pipewright;
using namespace pipewright::test;

namespace {

const QString mixedSpeed = PIPEWRIGHT_SOURCE_DIR "/resources/experiments/mixed-speed/";

/// Makes design.json: two groups, each of a device and one half as fast, with a small model of this kind.
bool makeGroups(const StandInMachine& machine, const QString& family, const QString& model)
{
    QFile from(mixedSpeed + "pipeline-" + model + ".json"), to(machine.path("model.json"));
    if (!from.open(QIODevice::ReadOnly) || !to.open(QIODevice::WriteOnly))
        return false;
    QJsonObject shape = QJsonDocument::fromJson(from.readAll()).object();
    const bool halved = family == "interleaved-1f1b"; // two stages on each device
    for (const auto& [size, value] : {std::pair{"layers", halved ? 4 : 2},
                                      {"hidden", 16},
                                      {"ffn", 32},
                                      {"vocabulary", model == "mlp" ? 4 : 256}, // classes of files, or bytes
                                      {"sequence", 4},
                                      {"microbatch_size", 4},
                                      {"expert_ffn", 16},
                                      {"features", 300}})
        if (shape.contains(size))
            shape[size] = value;
    if (model == "experts")
        shape["activation"] = "silu";
    if (to.write(QJsonDocument(shape).toJson()) < 0)
        return false;
    to.close();
    return machine.make(family, 2, "--model model.json --cluster " + mixedSpeed + "two-groups.json");
}

} // namespace

class TestStandInGroups : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void membersTrain_data()
    {
        QTest::addColumn<QString>("family");
        QTest::addColumn<QString>("model");
        QTest::addColumn<int>("gpus");
        QTest::addColumn<QString>("link");
        // The other pairs of family, model and link train in one process (executor.run.tst_groupgpus).
        QTest::newRow("1f1b") << "1f1b"
                              << "transformer" << 4 << "auto";
        QTest::newRow("1f1b, copies for all") << "1f1b"
                                              << "transformer" << 4 << "copy";
        QTest::newRow("1f1b, slices") << "1f1b"
                                      << "transformer" << 1 << "auto";
        QTest::newRow("1f1b, captured") << "1f1b"
                                        << "transformer" << 4 << "auto --graphs";
        QTest::newRow("experts, captured, NCCL for all") << "zb-h1"
                                                         << "experts" << 4 << "nccl --graphs";
        QTest::newRow("zb-h1, two GPUs") << "zb-h1"
                                         << "transformer" << 2 << "auto";
        QTest::newRow("interleaved") << "interleaved-1f1b"
                                     << "transformer" << 4 << "auto";
        QTest::newRow("an MLP") << "zb-h1"
                                << "mlp" << 4 << "nccl";
    }
    void membersTrain()
    {
        QFETCH(QString, family);
        QFETCH(QString, model);
        QFETCH(int, gpus);
        QFETCH(QString, link);
        const StandInMachine machine(gpus);
        QVERIFY(makeGroups(machine, family, model));
        const StandInOutcome ran = machine.run(onGpus + "2 --link " + link);
        const QString why = whyNotRight(ran);
        QVERIFY2(why.isEmpty(), qPrintable(why));
        QCOMPARE(ran.json["maths"].toString(), QString("training"));
        QCOMPARE(ran.json["devices"].toInt(), 4);
        QCOMPARE(ran.counted("copies between GPUs through the host"), 0.0);
        const bool byNccl = link != "copy" && gpus > 1;
        QCOMPARE(ran.most("communicators") > 0, byNccl);
        QVERIFY(ran.counted("kernels") > 0);
        QCOMPARE(ran.counted("graph launches") > 0, link.endsWith("--graphs"));
        // As on the host, whose sums have another order.
        const StandInOutcome host =
            machine.run("run design.json --backend host --json --progress none --steps 2 -o h.db");
        QCOMPARE(host.code, 0);
        for (int step = 0; step < 2; ++step) {
            const double loss = ran.json["loss"].toArray()[step].toDouble(),
                         there = host.json["loss"].toArray()[step].toDouble();
            QVERIFY2(std::abs(loss - there) < 1e-4 * there, qPrintable(QString("%1, not %2").arg(loss).arg(there)));
        }
        // The trace has the members and their collectives.
        const StandInOutcome members =
            machine.run("query trace.db \"SELECT name FROM LANES WHERE name LIKE 'member %' ORDER BY name\" --json");
        for (const char* member : {"member 0", "member 1", "member 2", "member 3"})
            QVERIFY2(members.output.contains(member), qPrintable(members.output + members.errors));
        QCOMPARE(machine.run("explain trace.db --json").code, 0);
        QCOMPARE(machine.run("compare design.json trace.db --json").code, 0);
    }

    /// A third step, after everything was captured in the second: one graph launch for each part and for each member's
    /// side of a collective; the only other kernels, products and NCCL calls are the update's.
    void whatTheHostIssuesForMembersAsGraphs()
    {
        StandInMachine machine(4);
        machine.set("DELAY", "0");
        QVERIFY(makeGroups(machine, "1f1b", "transformer"));
        const auto run = [&](int steps, const char* way) {
            return machine.run("run design.json --backend cuda --json --progress none --record nothing "
                               "--no-gradient-check --steps "
                               + QString::number(steps) + way);
        };
        const auto added = [](const StandInOutcome& more, const StandInOutcome& less, const char* what) {
            return more.counted(what) - less.counted(what);
        };
        const StandInOutcome two = run(2, " --graphs"), three = run(3, " --graphs"), streams = run(2, ""),
                             another = run(3, "");
        for (const StandInOutcome* each : {&two, &three, &streams, &another})
            QVERIFY2(each->code == 0 && each->faults().isEmpty(), qPrintable(each->errors + each->faults()));
        const double launched = added(three, two, "graph launches");
        QVERIFY(launched > 0);
        QCOMPARE(launched, two.counted("graph launches")); // those of the second step
        for (const char* what : {"products", "kernels of NCCL"}) {
            QCOMPARE(added(three, two, what), 0.0);
            QVERIFY2(added(another, streams, what) > 0, what);
        }
        const auto kernels = [&](const StandInOutcome& more, const StandInOutcome& less) {
            return added(more, less, "cudaLaunchKernel") + added(more, less, "cuLaunchKernelEx");
        };
        QVERIFY(kernels(three, two) + launched < kernels(another, streams) / 2);
        for (const char* call : {"cudaSetDevice", "cudaMalloc", "cudaFree", "cudaStreamSynchronize"})
            QVERIFY2(added(three, two, call) <= added(another, streams, call), call);
    }

    void copiesBetweenMembersAreNotCaptured()
    {
        const StandInMachine machine(4);
        QVERIFY(makeGroups(machine, "1f1b", "transformer"));
        const StandInOutcome ran = machine.run(onGpus + "2 --graphs --link copy");
        QCOMPARE(ran.code, 2);
        QVERIFY2(ran.errors.contains("which cannot be captured"), qPrintable(ran.errors));
        QVERIFY2(ran.faults().isEmpty(), qPrintable(ran.faults()));
    }

    void membersTrainInProcessesOfTheirOwn_data()
    {
        QTest::addColumn<QString>("family");
        QTest::addColumn<QString>("options");
        QTest::newRow("1f1b") << "1f1b"
                              << "";
        QTest::newRow("zb-h1, captured") << "zb-h1"
                                         << " --graphs";
    }
    void membersTrainInProcessesOfTheirOwn()
    {
        QFETCH(QString, family);
        QFETCH(QString, options);
        const StandInMachine machine(4);
        QVERIFY(makeGroups(machine, family, "transformer"));
        const StandInOutcome ran =
            machine.run("run design.json --backend mpi --device cuda --steps 3 --json --progress "
                        "none --force -o trace.db"
                        + options);
        const QString why = whyNotRight(ran);
        QVERIFY2(why.isEmpty(), qPrintable(why));
        QCOMPARE(ran.json["maths"].toString(), QString("training"));
        QCOMPARE(ran.json["devices"].toInt(), 4);
        QVERIFY(ran.reports.size() >= 4); // one of each process
        QCOMPARE(ran.counted("graph launches") > 0, !options.isEmpty());
        const StandInOutcome host =
            machine.run("run design.json --backend host --json --progress none --steps 3 -o h.db");
        for (int step = 0; step < 3; ++step) {
            const double loss = ran.json["loss"].toArray()[step].toDouble(),
                         there = host.json["loss"].toArray()[step].toDouble();
            QVERIFY2(std::abs(loss - there) < 1e-4 * there, qPrintable(QString("%1, not %2").arg(loss).arg(there)));
        }
        QCOMPARE(machine.run("compare design.json trace.db --json").code, 0);
    }

    void whatIsCheckedBeforehandIsWhatRuns()
    {
        const StandInMachine machine(4);
        QVERIFY(makeGroups(machine, "1f1b", "transformer"));
        const StandInOutcome checked = machine.run("check design.json --for cuda --graphs --json");
        QVERIFY2(checked.code == 0, qPrintable(checked.output + checked.errors));
        QVERIFY2(!checked.output.contains("--graphs"), qPrintable(checked.output));
    }

    void whatDoesNotConnectIsSaid_data()
    {
        QTest::addColumn<QString>("link");
        QTest::newRow("a group") << "auto";
        QTest::newRow("a link") << "nccl";
    }
    /// A call that never comes back, as when another process is gone, is ended from outside.
    void whatDoesNotConnectIsSaid()
    {
        QFETCH(QString, link);
        StandInMachine machine(4);
        machine.set("FAIL", "linger:1");
        QVERIFY(makeGroups(machine, "1f1b", "transformer"));
        const StandInOutcome ran = machine.run(onGpus + "1 --deadline 2s --link " + link, 60);
        QCOMPARE(ran.code, 2);
        QVERIFY2(ran.errors.contains("the deadline has passed, and NCCL has not connected its ranks"),
                 qPrintable(ran.errors));
        for (const QJsonObject& report : ran.reports) {
            const QByteArray broken = QJsonDocument(report["broken"].toArray()).toJson();
            QVERIFY2(report["broken"].toArray().isEmpty(), broken.constData());
        }
    }

    void aMemberThatFailsIsNamedAndAllIsGivenBack_data()
    {
        QTest::addColumn<QString>("options");
        QTest::newRow("copies") << "--link copy";
        QTest::newRow("NCCL") << "--link nccl";
    }
    void aMemberThatFailsIsNamedAndAllIsGivenBack()
    {
        QFETCH(QString, options);
        const StandInMachine machine(4);
        QVERIFY(makeGroups(machine, "1f1b", "transformer"));
        const StandInOutcome ran = machine.run(onGpus + "1 --deadline 10s --inject throws:1:0:4 " + options, 90);
        QCOMPARE(ran.code, 2);
        QVERIFY2(ran.errors.contains("an injected fault made its maths fail"), qPrintable(ran.errors));
        QVERIFY2(ran.faults().isEmpty(), qPrintable(ran.faults()));
    }
};

PIPEWRIGHT_TEST(TestStandInGroups, QCoreApplication)
#include "tst_standingroups.moc"
