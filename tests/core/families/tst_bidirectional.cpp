// SPDX-License-Identifier: GPL-3.0-or-later
// Several copies, several blocks at once, pieces of sequences: Chimera, DualPipe, DualPipeV and Seq1F1B
// against their published numbers, and what overlapped pairs, replicas and pieces demand of a schedule.
#include "core/families/family.h"
#include "core/files/designfile.h"
#include "core/predict/predict.h"
#include "core/program/overlaps.h"
#include "core/schedule/edits.h"
#include "core/schedule/validate.h"
#include "makers/designs.h"
#include "testmain.h"

#include <QTest>

#include <algorithm>
#include <set>

using namespace pipewright;
using namespace pipewright::test;

namespace {

Schedule made(const char* family, int devices, int microbatches, std::optional<int> pieces = {})
{
    FamilyParameters parameters = sized(devices, microbatches);
    parameters.pieces = pieces;
    return makeSchedule(family, parameters);
}

/// Times per stage and microbatch in units of a microsecond; B = I + W.
Prediction predicted(Schedule schedule, Nanoseconds forward, Nanoseconds inputGrad, Nanoseconds weightGrad,
                     double overlapFactor = 1)
{
    DeviceWorth worth;
    worth.forward = 1000 * forward;
    worth.inputGrad = 1000 * inputGrad;
    worth.weightGrad = 1000 * weightGrad;
    worth.perChunk = true;
    Design design = evenDesign(worth, std::move(schedule));
    design.costs.overlapFactor = overlapFactor;
    return predict(design);
}

QString lane(const Schedule& schedule, int device)
{
    QStringList words;
    for (const Block& block : schedule.order[device])
        words << QString::fromStdString(toString(block));
    return words.join(' ');
}

/// JaxPP's list of a DualPipeV: halves that stand together are one backward, and nothing overlaps.
Schedule withoutOverlap(Schedule schedule)
{
    schedule.overlaps.clear();
    for (std::vector<Block>& blocks : schedule.order) {
        std::vector<Block> fused;
        for (std::size_t i = 0; i < blocks.size(); ++i) {
            Block block = blocks[i];
            if (block.op == Op::I && i + 1 < blocks.size()
                && blocks[i + 1] == Block{Op::W, block.stage, block.microbatch}) {
                block.op = Op::B;
                ++i;
            }
            fused.push_back(block);
        }
        blocks = std::move(fused);
    }
    return schedule;
}

} // namespace

class TwoWaysTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void chimeraLeavesTwoSlotsLessThanDevicesEmpty()
    {
        // Rate (D-2) / (2N+D-2) with equal slots for F and B, N a multiple of D; and between D/2+1 and D live.
        for (const int devices : {2, 4, 6, 8, 16, 32})
            for (const int units : {1, 2, 3, 8}) {
                const int n = devices * units;
                const Schedule schedule = made("chimera", devices, n);
                QVERIFY2(validate(schedule).empty(), toString(validate(schedule)).c_str());
                const Prediction p = predicted(schedule, 2, 1, 1);
                QCOMPARE(p.metrics.makespan, Nanoseconds{2000} * (2 * n + devices - 2));
                QCOMPARE(p.metrics.rateMakespan, double(devices - 2) / (2 * n + devices - 2));
                const auto& d = p.metrics.devices;
                const auto less = [](const auto& a, const auto& b) { return a.peakActivations < b.peakActivations; };
                QCOMPARE(std::max_element(d.begin(), d.end(), less)->peakActivations, double(devices));
                if (units == 1)
                    QCOMPARE(std::min_element(d.begin(), d.end(), less)->peakActivations, double(devices / 2 + 1));
            }
    }

    void chimeraWithBackwardsTwiceAsLong()
    {
        // (D-2) / (1.5N+D-2) for one unit of N = D.
        for (const int devices : {2, 4, 6, 8, 16}) {
            const Prediction p = predicted(made("chimera", devices, devices), 1, 1, 1);
            QCOMPARE(p.metrics.rateMakespan, (devices - 2) / (1.5 * devices + devices - 2));
        }
    }

    void everyReplicaReducesAndUpdatesItsStages()
    {
        Design design;
        design.schedule = made("chimera", 4, 4);
        design.costs = unitCosts(4);
        const Program program = predict(design).program;
        QCOMPARE(program.replicas(), 2);
        std::multiset<QString> labels;
        for (TaskId t = 0; t < program.tasks.size(); ++t)
            if (isReduction(program.tasks[t].kind) || isUpdate(program.tasks[t].kind))
                labels.insert(QString::fromStdString(program.label(t)));
        for (int stage = 0; stage < 4; ++stage) {
            QCOMPARE(labels.count(QString("reduce stage %1 over replicas").arg(stage)), 1u);
            QCOMPARE(labels.count(QString("U%1").arg(stage)), 1u);
            QCOMPARE(labels.count(QString("U%1/1").arg(stage)), 1u);
        }
        for (const Program::Device& device : program.devices)
            QCOMPARE(device.persistentBytes, Bytes{2 * 400'000}); // two stages each, a copy of either replica
    }

    void dualPipeHasThePublishedBubble()
    {
        // (PP/2-1)(F&B + B - 3W) on every rank, PP+1 activations.
        for (const int devices : {2, 4, 8, 16})
            for (const int microbatches : {2 * devices, 2 * devices + 4, 6 * devices}) {
                const Schedule schedule = made("dualpipe", devices, microbatches);
                QVERIFY2(validate(schedule).empty(), toString(validate(schedule)).c_str());
                const Prediction p = predicted(schedule, 1, 1, 1);
                for (const DeviceMetrics& d : p.metrics.devices) {
                    QCOMPARE(d.idle, Nanoseconds{1000} * (devices / 2 - 1) * (3 + 2 - 3));
                    QCOMPARE(d.peakActivations, double(devices + 1));
                }
            }
    }

    void dualPipeVReproducesPyTorchsExample_data()
    {
        // torch's dualpipev_4rank_10mb, per chunk: times, the pair's time, makespan and idle time per rank.
        QTest::addColumn<int>("time");
        QTest::addColumn<double>("pair");
        QTest::addColumn<double>("makespan");
        QTest::addColumn<QList<double>>("idle");
        QTest::newRow("pair 3") << 1 << 3.0 << 66.0 << QList<double>{6, 6, 6, 6};
        QTest::newRow("pair 2.5") << 1 << 2.5 << 59.0 << QList<double>{3.5, 4, 4.5, 4.5};
        QTest::newRow("pair 5.5") << 2 << 5.5 << 125.0 << QList<double>{9.5, 10, 10.5, 10.5};
    }

    void dualPipeVReproducesPyTorchsExample()
    {
        QFETCH(int, time);
        QFETCH(double, pair);
        QFETCH(double, makespan);
        QFETCH(QList<double>, idle);
        const Prediction p = predicted(made("dualpipe-v", 4, 10), time, time, time, pair / (3 * time));
        QCOMPARE(p.metrics.makespan, Nanoseconds(1000 * makespan));
        for (int d = 0; d < 4; ++d) {
            const DeviceMetrics& device = p.metrics.devices[d];
            QCOMPARE(device.idle, Nanoseconds(1000 * idle[d]));
            QCOMPARE(device.peakActivations, 4.5); // 9 chunks
        }
    }

    void dualPipeVHasThePublishedBubble()
    {
        for (const int devices : {1, 2, 3, 4, 7, 16})
            for (const int microbatches : {2 * devices, 2 * devices + 1, 5 * devices}) {
                const Schedule schedule = made("dualpipe-v", devices, microbatches);
                QVERIFY2(validate(schedule).empty(), toString(validate(schedule)).c_str());
                for (const DeviceMetrics& d : predicted(schedule, 1, 1, 1).metrics.devices) {
                    QCOMPARE(d.idle, Nanoseconds{1000} * (devices - 1) * (3 + 2 - 3));
                    QCOMPARE(2 * d.peakActivations, 2.0 * devices + 1);
                }
            }
    }

    void dualPipeVUnpackedHasJaxppsMakespans()
    {
        const int expected[][3] = {{2, 4, 25}, {3, 6, 39}, {4, 8, 53}};
        for (const auto& [devices, microbatches, makespan] : expected) {
            const Prediction p = predicted(withoutOverlap(made("dualpipe-v", devices, microbatches)), 1, 1, 1);
            QCOMPARE(p.metrics.makespan, Nanoseconds{1000} * makespan);
            QCOMPARE(p.metrics.rateMakespan, 1.0 - 6.0 * microbatches / makespan);
            for (const DeviceMetrics& d : p.metrics.devices)
                QCOMPARE(2 * d.peakActivations, 2.0 * devices + 1);
            if (devices == 4)
                QCOMPARE(p.program.transferCount(), std::int64_t{96});
        }
    }

    void aPairStartsAndEndsTogetherAndIsBusyOnce()
    {
        const Prediction p = predicted(made("dualpipe-v", 3, 7), 1, 1, 1, 0.75);
        QVERIFY(!p.program.overlaps.empty());
        for (const Program::Overlap& pair : p.program.overlaps) {
            QCOMPARE(p.timeline.start[pair.first], p.timeline.start[pair.second]);
            QCOMPARE(p.timeline.end[pair.first], p.timeline.end[pair.second]);
            QCOMPARE(p.timeline.end[pair.first] - p.timeline.start[pair.first], Nanoseconds{2250});
            QCOMPARE(overlapsWith(p.program, pair.first), pair.second);
            QCOMPARE(overlapsWith(p.program, pair.second), TaskId{none});
        }
        for (const DeviceMetrics& d : p.metrics.devices)
            QCOMPARE(d.busy + d.idle, p.metrics.makespan);
    }

    void seq1F1BIs1F1BOnPieces()
    {
        const Schedule whole = made("seq1f1b", 4, 8, 1);
        QCOMPARE(whole.order, made("1f1b", 4, 8).order);
        const Schedule cut = made("seq1f1b", 4, 2, 2);
        QVERIFY2(validate(cut).empty(), toString(validate(cut)).c_str());
        QCOMPARE(lane(cut, 3), QString("F3.0 F3.1 B3.1 F3.2 B3.0 F3.3 B3.3 B3.2"));
        QCOMPARE(lane(cut, 1), QString("F1.0 F1.1 F1.2 F1.3 B1.1 B1.0 B1.3 B1.2"));
        for (const int pieces : {2, 4, 8}) {
            // The warm-up: p-r-2+k units, and one more is live when the first backward starts.
            const Prediction p = predicted(made("seq1f1b", 4, 16, pieces), 1, 1, 1);
            for (int d = 0; d < 4; ++d)
                QCOMPARE(p.metrics.devices[d].peakActivations, double(4 - d - 1 + pieces) / pieces);
        }
    }

    void piecesOfASequenceKeepTheirOrder()
    {
        Schedule schedule = made("seq1f1b", 2, 2, 2);
        for (const char* moved : {"F1.1", "B1.0"}) {
            const Position from = find(schedule, block(moved));
            const EditResult r = moveBlock(schedule, block(moved), from.index - (moved[0] == 'F' ? 1 : 2));
            QVERIFY(!r.legal());
            QVERIFY2(toString(r.diagnostics).find("same sequence") != std::string::npos,
                     toString(r.diagnostics).c_str());
        }
    }

    void faultsOfReplicasPiecesAndPairsAreNamed()
    {
        const auto says = [](const Schedule& schedule, const char* words) {
            const std::string text = toString(validate(schedule));
            return text.find(words) != std::string::npos ? QString() : QString::fromStdString(text);
        };
        Schedule chimera = made("chimera", 4, 4);
        chimera.order[0].front().replica = 1 - chimera.order[0].front().replica;
        QCOMPARE(says(chimera, "belongs to replica"), QString());
        chimera = made("chimera", 4, 4);
        chimera.replicaPlacements[0].pop_back();
        QCOMPARE(says(chimera, "every replica has all stages"), QString());
        chimera = made("chimera", 4, 4);
        chimera.replicaPlacements[0][2] = 9;
        QCOMPARE(says(chimera, "unknown device 9"), QString());
        chimera = made("chimera", 4, 4);
        chimera.replicaPlacements.push_back(chimera.deviceOfStage);
        QCOMPARE(says(chimera, "3 replicas"), QString());
        chimera = made("chimera", 4, 4);
        chimera.microbatches = 5;
        QCOMPARE(says(chimera, "share the microbatches equally"), QString());
        Schedule seq = made("seq1f1b", 2, 2, 2);
        seq.sequencePieces = 3;
        QCOMPARE(says(seq, "sequences of 3 pieces"), QString());

        Schedule dual = made("dualpipe-v", 2, 4);
        dual.overlaps.push_back({block("F0.0"), block("B0.3")});
        QCOMPARE(says(dual, "do not stand one behind the other"), QString());
        Schedule plain = schedule(2, {0, 1}, {"F0.0 F0.1 B0.0 B0.1", "F1.0 B1.0 F1.1 B1.1"});
        plain.overlaps = {{block("F1.0"), block("B1.0")}};
        QCOMPARE(says(plain, "same microbatch"), QString());
        plain.overlaps = {{block("F0.0"), block("F0.1")}, {block("F0.1"), block("B0.0")}};
        QCOMPARE(says(plain, "overlaps with two others"), QString());
        // B1.0 waits for F1.0 alone, F1.1 for F0.1, which waits for nothing: legal, and later than apart.
        plain.overlaps = {{block("B1.0"), block("F1.1")}};
        QCOMPARE(says(plain, ""), QString());
        // F0.1 and B0.0 together: B0.0 waits for B1.0, which is tied to F1.1, which waits for F0.1.
        plain.overlaps.insert(plain.overlaps.end(), Overlap{block("F0.1"), block("B0.0")});
        std::sort(plain.overlaps.begin(), plain.overlaps.end());
        QCOMPARE(says(plain, "wait for each other"), QString());
    }

    void movingABlockOfAPairTakesThePairApart()
    {
        const Schedule schedule = made("dualpipe-v", 2, 6);
        const Overlap pair = schedule.overlaps.front();
        const Position second = find(schedule, pair.second);
        const EditResult moved = moveBlock(schedule, pair.second, second.index + 3);
        QVERIFY2(moved.legal(), toString(moved.diagnostics).c_str());
        QCOMPARE(std::count(moved.schedule.overlaps.begin(), moved.schedule.overlaps.end(), pair), 0);
        QVERIFY(moved.schedule.overlaps.size() + 1 >= schedule.overlaps.size() - 1);
    }

    void aReplicasStageMovesAlone()
    {
        const Schedule schedule = made("chimera", 4, 4);
        const auto startOf = [](const Block& b) { return Nanoseconds{b.microbatch}; };
        const EditResult moved = moveStage(schedule, 2, 3, startOf, {}, 1);
        QCOMPARE(moved.schedule.replicaPlacements[0][2], 3);
        QCOMPARE(moved.schedule.deviceOfStage, schedule.deviceOfStage);
        for (const Block& b : moved.schedule.order[1])
            QVERIFY(!(b.stage == 2 && b.replica == 1));
    }

    void designFilesKeepReplicasPiecesPairsAndScales()
    {
        for (const char* family : {"chimera", "dualpipe", "dualpipe-v", "seq1f1b"}) {
            Design design;
            design.schedule = made(family, 4, 8);
            design.costs = unitCosts(design.schedule.stages());
            design.costs.overlapFactor = 0.8125;
            design.costs.communication = Communication::Blocking;
            design.costs.link.bus = "switch";
            design.costs.linkOfPair[{0, 1}] = {5, 2.5e9, "pcie"};
            for (int m = 0; m < design.schedule.microbatches; ++m)
                design.costs.microbatches.push_back({1 + m / 8.0, 2 - m / 32.0});
            const Design back = designFromJson(designToJson(design), "memory");
            QVERIFY2(back == design, family);
        }
    }
};

PIPEWRIGHT_TEST(TwoWaysTest, NoApplication)
#include "tst_bidirectional.moc"
