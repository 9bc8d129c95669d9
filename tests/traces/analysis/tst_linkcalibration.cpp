// SPDX-License-Identifier: GPL-3.0-or-later
// What recordings tell of links: from transfers, sums over replicas and copies to the host, also on shared wires.
#include "core/design/redesign.h"
#include "testmain.h"
#include "traces/analysis/calibration.h"
#include "traces/analysis/recordedcosts.h"

#include <QTest>

#include <cmath>
#include <functional>

using namespace pipewright;
using namespace pipewright::test;

class TestLinkCalibration : public QObject {
    Q_OBJECT

private:
    Folder m_folder;
    int m_recordings = 0;

    std::string record(const char* name, const Design& design, int steps, const std::function<Costs(int)>& costsOfStep)
    {
        return recordedRun(m_folder / name, design, steps, costsOfStep);
    }

    /// A calibrated design and its costs under another family, against what really happens.
    void predictsItselfAndOthers(const Design& design, const Costs& real, const QStringList& families,
                                 double tolerance = 0)
    {
        const std::string name = "links " + std::to_string(m_recordings++) + ".db";
        const std::string path = record(name.c_str(), design, 2, [&](int) { return real; });
        const Design calibrated = calibrate(design, TraceReader(path), name);
        Design reality = design;
        reality.costs = real;
        QCOMPARE(predict(calibrated).metrics.makespan, predict(reality).metrics.makespan);
        for (const QString& name : families) {
            const Family& family = *findFamily(name.toStdString());
            const auto predicted = static_cast<double>(predict(withFamily(calibrated, family)).metrics.makespan);
            const auto happens = static_cast<double>(predict(withFamily(reality, family)).metrics.makespan);
            const QString text = QString("%1: %2, really %3").arg(name).arg(predicted).arg(happens);
            QVERIFY2(std::abs(predicted / happens - 1) <= tolerance, qPrintable(text));
        }
    }

private Q_SLOTS:
    void sizesOfTransfersTellTheBandwidth()
    {
        Design design = smallDesign("1f1b", 4, 8);
        design.costs.stages[0].output = 4'000'000;
        design.costs.stages[1].output = 1'000'000;
        design.costs.stages[2].output = 2'000'000;
        Costs real = realCosts(design);
        real.link = {50'000, 10e9};
        const std::string path = record("bandwidth.db", design, 4, [&](int) { return real; });
        const Design calibrated = calibrate(design, TraceReader(path), "bandwidth.db");
        QVERIFY(std::abs(calibrated.costs.link.latency - 50'000) < 50);
        QVERIFY(std::abs(calibrated.costs.link.bytesPerSecond / 10e9 - 1) < 1e-3);
        // A pair that carries one size takes the bandwidth of all, and its own latency.
        QVERIFY(std::abs(calibrated.costs.linkBetween(0, 1).transferTime(4'000'000) - 450'000) < 50);
    }

    /// On a shared wire what counts is how long it is occupied: a transfer that is all latency would not occupy it.
    void aBusStaysABus()
    {
        for (const char* family : {"1f1b", "interleaved-1f1b"}) {
            Design design = smallDesign(family, 4, 8);
            design.costs.link = {20'000, 2e8, "wire"};
            Costs real = design.costs;
            // As a full backward splits in the model, since 1F1B does not show the halves.
            predictsItselfAndOthers(design, real, {"gpipe", "1f1b", "interleaved-1f1b", "looped-bfs"}, 0.003);
            predictsItselfAndOthers(design, real, {"zb-h1", "zb-v"}, 0.01);
            real.link.latency = 90'000; // slower than the design says, with the same wire
            predictsItselfAndOthers(design, real, {"gpipe", "1f1b", "interleaved-1f1b"}, 0.003);
        }
    }

    void sizesThatAreAlikeKeepTheDesignsBandwidthAndSaySo()
    {
        Design design = smallDesign("1f1b", 4, 8);
        design.costs.link = {10'000, 2e8};
        Costs real = design.costs;
        real.link.latency = 45'000;
        const std::string path = record("alike.db", design, 2, [&](int) { return real; });
        const TraceReader trace(path);
        const Calibration found = calibrate(design, {{&trace, "alike.db"}});
        QCOMPARE(found.notes.size(), std::size_t{1});
        QVERIFY2(found.notes[0].find("all sizes are alike") != std::string::npos, found.notes[0].c_str());
        QVERIFY2(found.notes[0].find("0.2 GB/s") != std::string::npos, found.notes[0].c_str());
        for (const auto& [pair, link] : found.design.costs.linkOfPair) {
            QCOMPARE(link.bytesPerSecond, 2e8);
            QCOMPARE(link.latency, Nanoseconds{45'000});
        }
        QCOMPARE(found.design.costs.link.bytesPerSecond, 2e8); // of the pair 3 -> 0, which carried nothing
    }

    /// Recorded sums over replicas are links' work: they are larger than transfers, and go between other devices.
    void sumsOverReplicasTellTheirLinks()
    {
        DesignRequest request = requestFor("1f1b", 4, 8);
        request.replicas = 2;
        for (const char* bus : {"", "wire"})
            for (const bool sharded : {false, true}) {
                request.zero.level = sharded ? 1 : 0;
                Design design = makeDesign(request);
                design.costs.link = {10'000, 2e8, bus};
                predictsItselfAndOthers(design, design.costs, {"gpipe"});
                Costs real = design.costs;
                real.link.latency = 30'000;
                real.link.bytesPerSecond = 1e8;
                predictsItselfAndOthers(design, real, {"gpipe"});
            }
    }

    void copiesToTheHostTellItsLink()
    {
        Design design = smallDesign("1f1b", 2, 8);
        design.costs.hostLink = LinkCosts{5'000, 10e9};
        design = withOffload(design, {true, false});
        Costs real = design.costs;
        real.hostLink->bytesPerSecond = 5e9;
        predictsItselfAndOthers(design, real, {"gpipe"});
    }
};

PIPEWRIGHT_TEST(TestLinkCalibration, QCoreApplication)
#include "tst_linkcalibration.moc"
