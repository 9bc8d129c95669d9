// SPDX-License-Identifier: GPL-3.0-or-later
// The schedule of a large model trains a small one on this machine, of whatever family and edited in whatever way.
#include "core/design/newdesign.h"
#include "core/design/redesign.h"
#include "core/predict/designcheck.h"
#include "core/predict/predict.h"
#include "core/presets/presets.h"
#include "executor/run/backendcheck.h"
#include "gui/run/smalldesign.h"
#include "testmain.h"

#include <QTest>

#include <algorithm>

using namespace pipewright;

namespace {

Design large(const std::string& family, int devices = 4)
{
    const PresetLibrary presets;
    NewDesign choice;
    choice.workload = presets.workload("llama-3-8b");
    choice.cluster = presets.cluster("h200-node", devices);
    choice.family = family;
    return designFromModel(choice);
}

/// What is wrong with training the small design of `base`; empty: nothing.
QString faultsOf(const Design& base)
{
    const Design small = smallDesign(base);
    if (small.schedule.order != base.schedule.order || small.schedule.deviceOfStage != base.schedule.deviceOfStage)
        return QStringLiteral("another order");
    Diagnostics found = checkDesign(small);
    const BackendCheck check = checkForBackend(small, {.backend = "host", .maths = RunOptions::Maths::Training});
    found.insert(found.end(), check.found.begin(), check.found.end());
    std::erase_if(found, [](const Diagnostic& each) { return each.severity != Severity::Error; });
    if (found.empty() && !check.trains)
        return QStringLiteral("it does not train");
    return QString::fromStdString(toString(found));
}

} // namespace

class TestSmallDesign : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void everyFamilyTrains_data()
    {
        QTest::addColumn<std::string>("family");
        for (const Family& family : families())
            QTest::newRow(std::string(family.name).c_str()) << std::string(family.name);
    }
    void everyFamilyTrains()
    {
        QFETCH(std::string, family);
        QCOMPARE(faultsOf(large(family)), QString());
    }

    void thereIsALayerForEveryStage()
    {
        const Design small = smallDesign(large("zb-v", 8));
        QCOMPARE(small.schedule.stages(), 16);
        QCOMPARE(*std::ranges::min_element(small.layersPerStage), 1);
        QCOMPARE(faultsOf(large("zb-v", 8)), QString());
    }

    void anOrderOfOnesOwnIsKept()
    {
        Design base = large("zb-h1");
        std::swap(base.schedule.order[0][3], base.schedule.order[0][2]);
        QCOMPARE(faultsOf(base), QString());
    }

    void recomputationIsKept()
    {
        const Design base =
            withRecompute(large("1f1b"), {Recompute::Block, Recompute::None, Recompute::None, Recompute::None});
        QCOMPARE(faultsOf(base), QString());
        QVERIFY(smallDesign(base).schedule.recompute == base.schedule.recompute);
    }

    void itFitsWhereTheLargeOneDoesNot()
    {
        Bytes all = 0;
        for (const DeviceMetrics& device : predict(smallDesign(large("zb-h1"))).metrics.devices)
            all += device.peakBytes;
        QVERIFY2(all < (Bytes{1} << 30), qPrintable(QString::number(all)));
    }

    void measuredTimesOfTheLargeModelDoNotStay()
    {
        Design base = large("1f1b");
        base.costs.stages[0].forward = 1'000'000'000'000;
        for (StageCosts& stage : base.costs.stages)
            stage.origin.fill(CostOrigin::Measured);
        QVERIFY(smallDesign(base).costs.isFormula());
    }

    /// Costs that were given without a model have a schedule all the same.
    void noModelIsNeeded()
    {
        Design base = large("1f1b");
        base.workload.reset();
        base.layersPerStage.clear();
        QCOMPARE(faultsOf(base), QString());
    }
};

PIPEWRIGHT_TEST(TestSmallDesign, QCoreApplication)
#include "tst_smalldesign.moc"
