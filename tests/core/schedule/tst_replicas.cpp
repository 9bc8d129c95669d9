// SPDX-License-Identifier: GPL-3.0-or-later
// Copies of whole pipelines: they are schedules as any other, on devices and with microbatches of their own.
#include "core/design/redesign.h"
#include "core/predict/editrequest.h"
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
        for (const int replicas : {2, 3, 4}) {
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
        schedule = copies("1f1b", 6, 6, 3);
        QVERIFY(checkReplicas(schedule).empty());
        schedule.replicaPlacements[1] = schedule.deviceOfStage; // the third beside the first
        QVERIFY(hasErrors(checkReplicas(schedule)));
    }

    void theOptimizersStateIsSharedByReplicasOfTheirOwnDevices()
    {
        FamilyParameters parameters = test::sized(6, 6);
        parameters.replicas = 3;
        parameters.zero.level = 1;
        Schedule schedule = makeSchedule("1f1b", parameters);
        QVERIFY(schedule.sharesOptimizer() && !hasErrors(validate(schedule)));
        parameters.replicas = 1;
        QVERIFY(makeSchedule("chimera", parameters).sharesOptimizer()); // has two replicas by itself
        schedule.replicaPlacements.clear();
        QVERIFY(!schedule.sharesOptimizer()); // one copy alone
        Schedule together = test::schedule(2, {0, 0}, {"F0.0 F1.0 B1.0 B0.0"});
        together.replicaPlacements = {{0, 0}};
        QVERIFY(checkReplicas(together).empty());
        together.zero.level = 1;
        QVERIFY(hasErrors(checkReplicas(together)));
    }

    void sharesCoverAllAndDifferByOne()
    {
        for (const std::int64_t count : {0, 1, 7, 12, 1'000'003})
            for (const int replicas : {1, 2, 3, 5, 8}) {
                std::vector<ReplicaShare> shares;
                for (int replica = 0; replica < replicas; ++replica)
                    shares.push_back(shareOfReplica(count, replica, replicas));
                std::sort(shares.begin(), shares.end(), [](const ReplicaShare& a, const ReplicaShare& b) {
                    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
                });
                std::int64_t end = 0;
                for (const ReplicaShare& share : shares) {
                    QCOMPARE(share.begin, end);
                    end = share.end;
                    QVERIFY(share.count() == count / replicas || share.count() == count / replicas + 1);
                }
                QCOMPARE(end, count);
            }
    }

    void theRoundsLeaveEveryReplicaTheSumOfItsShare()
    {
        constexpr std::int64_t count = 1003;
        for (const int replicas : {1, 2, 3, 4, 5, 6, 7, 8, 11}) {
            std::vector<ReplicaShare> kept(std::size_t(replicas), {0, count});
            std::int64_t sent = 0;
            for (const ReplicaPair& pair : replicaPairs(replicas)) {
                ReplicaShare &root = kept[std::size_t(pair.root)], &other = kept[std::size_t(pair.other)];
                QVERIFY(root == other); // of the same replicas' shares
                const ReplicaShare before = root;
                root = keptBehind(count, pair, pair.root, replicas);
                other = keptBehind(count, pair, pair.other, replicas);
                if (other.count() > 0) {
                    QCOMPARE(std::min(root.begin, other.begin), before.begin);
                    QCOMPARE(std::max(root.end, other.end), before.end);
                    QVERIFY(root.end == other.begin || other.end == root.begin);
                } else {
                    QVERIFY(root == before);
                }
                sent += root.count() + other.count();
            }
            QCOMPARE(sent, (replicas - 1) * count); // and not 2 · count for every pair
            for (const ReplicaCopy& copy : replicaCopies(replicas))
                kept[std::size_t(copy.to)] = kept[std::size_t(copy.from)];
            for (int replica = 0; replica < replicas; ++replica) {
                const ReplicaShare share = shareOfReplica(count, replica, replicas);
                QVERIFY(kept[std::size_t(replica)].begin <= share.begin && share.end <= kept[std::size_t(replica)].end);
            }
        }
    }

    void allReplicasMeetInRoundsOfPairs()
    {
        for (const int replicas : {1, 2, 3, 4, 5, 6, 7, 8, 11}) {
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
            for (const ReplicaCopy& copy : replicaCopies(replicas))
                has[std::size_t(copy.to)] = has[std::size_t(copy.from)];
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
            for (const int replicas : {3, 4, 6}) {
                const Schedule all = copies(family, 4 * replicas, 16 * replicas, replicas);
                for (const ReplicaPair& pair : replicaPairs(all.replicas()))
                    for (int stage = 0; stage < all.stages(); ++stage)
                        QCOMPARE(rootOfPair(all, stage, all.placement(pair.root)[std::size_t(stage)], pair.other),
                                 pair.root);
            }
        }
    }

    void sharingTheOptimizersStateIsAnEdit()
    {
        auto design = std::make_shared<const Design>(test::evenDesign({.transfer = 1000}, copies("1f1b", 8, 16, 2)));
        const EditedDesign shared = apply(SetZero{{1}}, design, nullptr);
        QVERIFY(!hasErrors(shared.diagnostics) && shared.design->schedule.sharesOptimizer());
        QCOMPARE(apply(SetZero{{1}}, shared.design, nullptr).design, shared.design); // nothing changes
        QCOMPARE(*apply(SetZero{{0}}, shared.design, nullptr).design, *design);
        const auto one = std::make_shared<const Design>(test::evenDesign({}, copies("1f1b", 4, 8, 1)));
        const EditedDesign refused = apply(SetZero{{1}}, one, nullptr);
        QVERIFY(hasErrors(refused.diagnostics));
        QCOMPARE(refused.diagnostics.front().where, std::string("schedule.zero"));
        QCOMPARE(refused.design, one);
    }

    void anotherFamilyKeepsTheCopies()
    {
        const Design design = test::evenDesign({.transfer = 1000}, copies("1f1b", 8, 16, 2));
        const Schedule other = withFamily(design, *findFamily("zb-h1")).schedule;
        QCOMPARE(other, copies("zb-h1", 8, 16, 2));
        QCOMPARE(withFamily(design, *findFamily("pipedream-2bw")).schedule.replicas(), 1);
        Design sharded = design;
        sharded.schedule.zero.level = 1;
        QVERIFY(withFamily(sharded, *findFamily("zb-h1")).schedule.sharesOptimizer());
        QVERIFY(!withFamily(sharded, *findFamily("pipedream-2bw")).schedule.sharesOptimizer());
    }
};

PIPEWRIGHT_TEST(ReplicasTest, NoApplication)
#include "tst_replicas.moc"
