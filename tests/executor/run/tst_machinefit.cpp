// SPDX-License-Identifier: GPL-3.0-or-later
// Whether a design fits a machine, and with what it would.
#include "core/base/units.h"
#include "core/design/designbuilder.h"
#include "core/predict/predict.h"
#include "executor/run/machinefit.h"
#include "testmain.h"

#include <QTest>

#include <cmath>

using namespace pipewright;

namespace {

constexpr Bytes gib = Bytes{1} << 30;

PipewrightCudaDevice gpuOf(Bytes memory)
{
    PipewrightCudaDevice gpu{};
    gpu.memory = memory;
    return gpu;
}

} // namespace

class TestMachineFit : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void threadsThatComputeAtATimeShareTheCores()
    {
        const auto slowdown = [](const char* family, int microbatches, int cores,
                                 const std::vector<int>& threads = {}) {
            DesignRequest request;
            request.family = family;
            request.devices = 4;
            request.microbatches = microbatches;
            const Prediction prediction = predict(makeDesign(request));
            return slowdownOn(cores, prediction.program, prediction.timeline, threads);
        };
        const auto near = [](double found, double due) { return std::abs(found - due) < 1e-9; };
        QVERIFY(near(slowdown("gpipe", 1, 1), 1)); // one microbatch: one device computes at a time
        QVERIFY(near(slowdown("1f1b", 64, 4), 1));
        // On one core all blocks run one after the other: 4 devices x 64 blocks of 3 ms, in a step of 67 such times.
        QVERIFY(near(slowdown("1f1b", 64, 1), 4 * 64 / 67.0));
        QVERIFY(slowdown("1f1b", 64, 2) > 1.9 && slowdown("1f1b", 64, 2) < 2);
        QVERIFY(slowdown("1f1b", 64, 3) > 1.2 && slowdown("1f1b", 64, 3) < 4 / 3.0);
        QVERIFY(near(slowdown("gpipe", 1, 1, {2, 2, 2, 2}), 2)); // groups of two members
    }

    void moreDevicesThanCoresAreAWarningForWhatComputes()
    {
        DesignRequest request;
        request.family = "1f1b";
        request.devices = 4;
        request.microbatches = 64;
        const Design design = makeDesign(request);
        RunMeans means;
        QVERIFY(whySlow(design, means, true, 4).empty());
        const Diagnostics slow = whySlow(design, means, true, 2);
        QCOMPARE(slow.size(), std::size_t{1});
        QCOMPARE(slow.front().severity, Severity::Warning);
        QVERIFY2(slow.front().what.starts_with("4 devices compute on 2 cores of this machine: a step takes about 1.9 "),
                 slow.front().what.c_str());
        means.maths = RunOptions::Maths::Timed; // they sleep
        QVERIFY(whySlow(design, means, false, 2).empty());
        means.maths = RunOptions::Maths::Synthetic; // they burn
        QVERIFY(!whySlow(design, means, false, 2).empty());
        means.backend = "cuda";
        QVERIFY(whySlow(design, means, true, 2).empty());
    }

    void devicesOfTheHostShareItsMemory()
    {
        const std::vector<Bytes> peaks(4, 5 * gib);
        QVERIFY(whyTooLarge({}, peaks, "host", {20 * gib}).empty());
        const Diagnostics why = whyTooLarge({}, peaks, "host", {16 * gib});
        QCOMPARE(why.size(), std::size_t(1));
        QVERIFY(why.front().severity == Severity::Error);
        QCOMPARE(why.front().what,
                 "4 devices would hold " + formatSize(20 * gib) + ", and it has " + formatSize(16 * gib));
        QVERIFY(!why.front().hint.empty());
        QVERIFY(whyTooLarge({}, peaks, "host", {}).empty()); // nobody knows
        QVERIFY(whyTooLarge({}, peaks, "host", {16 * gib}, 0.5).empty());
    }

    void processesMayHaveOtherMachines()
    {
        const Diagnostics why = whyTooLarge({}, std::vector<Bytes>(4, 5 * gib), "mpi", {16 * gib});
        QCOMPARE(why.size(), std::size_t(1));
        QVERIFY(why.front().severity == Severity::Warning);
    }

    void everyGpuIsAskedForItsOwnDevices()
    {
        Design design;
        const MachineMemory machine{1000 * gib, {gpuOf(24 * gib), gpuOf(80 * gib)}};
        const std::vector<Bytes> peaks{20 * gib, 30 * gib};
        QVERIFY(whyTooLarge(design, peaks, "cuda", machine).empty()); // one each, in order
        const std::vector<Bytes> more{20 * gib, 30 * gib, 10 * gib};
        const Diagnostics why = whyTooLarge(design, more, "cuda", machine); // the third is on GPU 0 again
        QCOMPARE(why.size(), std::size_t(1));
        QCOMPARE(why.front().where, std::string("GPU 0"));
        design.cluster.gpus = {{1, 0}, {1, 0}, {1, 0}};
        QVERIFY(whyTooLarge(design, more, "cuda", machine).empty());
        QVERIFY(whyTooLarge(design, more, "cuda", {1 * gib, {}}).empty()); // no GPU is known: others say so
    }

    void theScaleLeavesHalfOfTheMemory()
    {
        const std::vector<Bytes> peaks(4, 75 * gib);
        QCOMPARE(memoryScaleThatFits({}, peaks, "host", {400 * gib}), 1.0);
        QCOMPARE(memoryScaleThatFits({}, peaks, "host", {62 * gib}), 0.1);
        QCOMPARE(memoryScaleThatFits({}, peaks, "host", {16 * gib}), 0.01);
    }
};

PIPEWRIGHT_TEST(TestMachineFit, NoApplication)
#include "tst_machinefit.moc"
