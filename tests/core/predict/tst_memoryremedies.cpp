// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/design/designbuilder.h"
#include "core/design/redesign.h"
#include "core/families/family.h"
#include "core/predict/designcheck.h"
#include "core/predict/memoryremedies.h"
#include "core/predict/peakchange.h"
#include "core/predict/predict.h"
#include "makers/designs.h"
#include "testmain.h"

#include <QTest>

#include <algorithm>

using namespace pipewright;

class TestMemoryRemedies : public QObject {
    Q_OBJECT

private:
    /// A GPipe whose devices have this share of its highest peak.
    static Design crowded(double share)
    {
        Design design = withFamily(test::presetDesign(), *findFamily("gpipe"));
        Bytes peak = 0;
        for (const Bytes each : devicePeaks(predict(design).metrics))
            peak = std::max(peak, each);
        for (DeviceSpec& device : design.cluster.devices)
            device.memory = static_cast<Bytes>(share * static_cast<double>(peak));
        return design;
    }

private Q_SLOTS:
    void whatIsOfferedFits()
    {
        const Design design = crowded(0.6);
        QVERIFY(hasErrors(checkDesign(design)));
        const std::vector<MemoryRemedy> remedies = memoryRemedies(design, 3);
        QVERIFY(!remedies.empty() && remedies.size() <= 3);
        Nanoseconds last = 0;
        for (const MemoryRemedy& remedy : remedies) {
            QVERIFY2(!hasErrors(checkDesign(remedy.design)), remedy.name.c_str());
            const Prediction prediction = predict(remedy.design);
            QCOMPARE(remedy.makespan, prediction.metrics.makespan);
            const std::vector<Bytes> peaks = devicePeaks(prediction.metrics);
            QCOMPARE(remedy.peak, *std::max_element(peaks.begin(), peaks.end()));
            QVERIFY(remedy.makespan >= last);
            last = remedy.makespan;
        }
    }

    /// Of copies that are only counted, up to the level that is enough.
    void copiesShareOutTheirStates()
    {
        DesignRequest request = test::requestFor("interleaved-1f1b", 2, 8);
        request.model = "llama-3-8b";
        request.cluster = "h100-nodes";
        request.chunks = 4;
        request.parallel = Parallelism{.data = 8};
        Design design = makeDesign(request);
        const auto offersWithin = [&](const Zero& zero) {
            const std::vector<Bytes> peaks = devicePeaks(predict(withZero(design, zero)).metrics);
            for (DeviceSpec& device : design.cluster.devices)
                device.memory = *std::max_element(peaks.begin(), peaks.end());
            QStringList names;
            for (const MemoryRemedy& remedy : memoryRemedies(design, 20))
                names << QString::fromStdString(remedy.name);
            return names.join("; ");
        };
        const QString first = offersWithin({.level = 1});
        QVERIFY2(first.contains("(ZeRO 1)"), qPrintable(first));
        const Zero all{.level = 3, .reshard = {true, {}}, .prefetch = 0, .reduce = Zero::Reduce::Each};
        const QString last = offersWithin(all);
        QVERIFY2(last.contains("free them after each visit") && !last.contains("(ZeRO 1)"), qPrintable(last));
    }

    /// And drawn ones, which sum their gradients once.
    void replicasShareOutTheirStates()
    {
        DesignRequest request = test::requestFor("interleaved-1f1b", 4, 16);
        request.model = "llama-3-8b";
        request.cluster = "h100-nodes";
        request.chunks = 4;
        request.replicas = 2;
        Design design = makeDesign(request);
        const Design sharing = withZero(design, {.level = 3, .reshard = {true, {}}, .prefetch = 0});
        const std::vector<Bytes> peaks = devicePeaks(predict(sharing).metrics);
        for (DeviceSpec& device : design.cluster.devices)
            device.memory = *std::max_element(peaks.begin(), peaks.end());
        QStringList names;
        for (const MemoryRemedy& remedy : memoryRemedies(design, 20))
            names << QString::fromStdString(remedy.name);
        QVERIFY2(names.join("; ").contains("free them after each visit"), qPrintable(names.join("; ")));
    }

    void whereNothingFitsNothingIsOffered()
    {
        QVERIFY(memoryRemedies(crowded(1e-6), 3).empty());
        QVERIFY(memoryRemedies(crowded(0.6), 3, [] { return true; }).empty());
    }

    void theDeviceThatAnEditChangesMostIsNamed()
    {
        const auto change = [](std::vector<Bytes> before, std::vector<Bytes> after) {
            const PeakChange most = peakChange(before, after);
            return std::pair(most.device, most.difference);
        };
        QCOMPARE(change({10, 50}, {18, 50}), std::pair(0, Bytes{8})); // the fullest one stays as it was
        QCOMPARE(change({10, 50}, {12, 40}), std::pair(0, Bytes{2})); // what grows comes first
        QCOMPARE(change({10, 50}, {9, 40}), std::pair(1, Bytes{-10}));
        QCOMPARE(change({10, 50}, {10, 50}), std::pair(-1, Bytes{0}));
    }
};

PIPEWRIGHT_TEST(TestMemoryRemedies, QCoreApplication)
#include "tst_memoryremedies.moc"
