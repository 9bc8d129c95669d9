// SPDX-License-Identifier: GPL-3.0-or-later
// Copies of whole pipelines: they are schedules as any other, on devices and with microbatches of their own.
#include "core/design/redesign.h"
#include "core/schedule/replicas.h"
#include "core/schedule/validate.h"
#include "makers/designs.h"
#include "testmain.h"

#include <QTest>

#include <algorithm>

using namespace pipewright;

namespace {

Schedule copies(std::string_view family, int devices, int microbatches, int replicas)
{
    FamilyParameters parameters = test::sized(devices, microbatches);
    parameters.replicas = replicas;
    return makeSchedule(family, parameters);
}

std::string refusal(std::string_view family, int devices, int microbatches, int replicas)
{
    try {
        (void)copies(family, devices, microbatches, replicas);
    } catch (const Error& error) {
        return error.diagnostics().front().where + ": " + error.diagnostics().front().what;
    }
    return {};
}

} // namespace

class ReplicasTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void everySynchronousFamilyHasCopies_data()
    {
        QTest::addColumn<QByteArray>("family");
        for (const Family& family : families())
            if (!family.updates)
                QTest::newRow(family.name.data()) << QByteArray(family.name.data());
    }
    void everySynchronousFamilyHasCopies()
    {
        QFETCH(QByteArray, family);
        const Schedule one = test::possibleSchedule(family.toStdString(), 4, 8);
        for (const int replicas : {2, 4}) {
            const int microbatches = one.microbatches / one.sequencePieces;
            const Schedule all =
                copies(family.toStdString(), replicas * one.devices(), replicas * microbatches, replicas);
            const Diagnostics wrong = validate(all);
            QVERIFY2(!hasErrors(wrong), wrong.empty() ? "" : wrong.front().what.c_str());
            QCOMPARE(all.devices(), replicas * one.devices());
            QCOMPARE(all.microbatches, replicas * one.microbatches);
            QCOMPARE(all.replicas(), replicas * one.replicas());
            QCOMPARE(all.stages(), one.stages());
            QCOMPARE(all.blocks(), replicas * one.blocks());
            QCOMPARE(pipelinesOf(all), replicas);
            QCOMPARE(pipelinesOf(one), 1);
            // Block for block what the first pipeline does.
            for (std::size_t d = 0; d < all.order.size(); ++d) {
                const std::vector<Block>& first = one.order[d % one.order.size()];
                QCOMPARE(all.order[d].size(), first.size());
                for (std::size_t i = 0; i < first.size(); ++i) {
                    QCOMPARE(all.order[d][i].op, first[i].op);
                    QCOMPARE(all.order[d][i].stage, first[i].stage);
                    QCOMPARE(all.order[d][i].microbatch % one.microbatches, first[i].microbatch);
                }
            }
        }
    }

    void whatCannotBeCopiedIsRefused()
    {
        QCOMPARE(refusal("1f1b", 6, 6, 3), std::string("--replicas: 3 replicas"));
        QCOMPARE(refusal("1f1b", 4, 4, 0), std::string("--replicas: 0 replicas"));
        QVERIFY(refusal("1f1b", 5, 8, 2).starts_with("--replicas: 2 replicas of 5 devices"));
        QVERIFY(refusal("1f1b", 4, 7, 2).starts_with("--replicas: "));
        QVERIFY(refusal("pipedream-2bw", 4, 8, 2).starts_with("--replicas: "));
        QVERIFY(refusal("dp", 4, 8, 2).starts_with("--replicas: "));
    }

    void aFileMayNotMixTheDevicesOfCopies()
    {
        Schedule schedule = copies("1f1b", 8, 8, 4);
        schedule.replicaPlacements[2] = schedule.replicaPlacements[0]; // replica 3 beside replica 1
        const Diagnostics shared = checkReplicas(schedule);
        QVERIFY(hasErrors(shared));
        QCOMPARE(QString::fromStdString(shared.front().what), QString("stage 0 of replicas 1 and 3 is on device 2"));
        schedule = copies("1f1b", 8, 8, 4);
        schedule.replicaPlacements.pop_back();
        QCOMPARE(QString::fromStdString(checkReplicas(schedule).front().what), QString("3 replicas"));
        QVERIFY(hasErrors(validate(schedule)));
    }

    void allReplicasMeetInRoundsOfPairs()
    {
        for (const int replicas : {1, 2, 4, 8}) {
            std::vector<std::vector<int>> has; // of each: whose gradients are in its sum
            for (int r = 0; r < replicas; ++r)
                has.push_back({r});
            int round = 0;
            for (const ReplicaPair& pair : replicaPairs(replicas)) {
                QVERIFY(pair.root < pair.other && pair.round >= round);
                round = pair.round;
                std::vector<int>&root = has[std::size_t(pair.root)], &other = has[std::size_t(pair.other)];
                root.insert(root.end(), other.begin(), other.end());
                other = root;
            }
            for (std::vector<int>& each : has) {
                std::sort(each.begin(), each.end());
                QCOMPARE(each.size(), std::size_t(replicas));
                QVERIFY(std::adjacent_find(each.begin(), each.end()) == each.end());
            }
        }
    }

    void theRootOfAPairIsFoundByItsDevice()
    {
        for (const char* family : {"1f1b", "chimera", "v-half"}) {
            const Schedule all = copies(family, 16, 64, 4);
            for (const ReplicaPair& pair : replicaPairs(all.replicas()))
                for (int stage = 0; stage < all.stages(); ++stage)
                    QCOMPARE(rootOfPair(all, stage, all.placement(pair.root)[std::size_t(stage)], pair.other),
                             pair.root);
        }
    }

    void anotherFamilyKeepsTheCopies()
    {
        const Design design = test::evenDesign({.transfer = 1000}, copies("1f1b", 8, 16, 2));
        const Schedule other = withFamily(design, *findFamily("zb-h1")).schedule;
        QCOMPARE(other, copies("zb-h1", 8, 16, 2));
        QCOMPARE(withFamily(design, *findFamily("pipedream-2bw")).schedule.replicas(), 1);
    }
};

PIPEWRIGHT_TEST(ReplicasTest, NoApplication)
#include "tst_replicas.moc"
