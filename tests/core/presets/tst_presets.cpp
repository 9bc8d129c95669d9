// SPDX-License-Identifier: GPL-3.0-or-later
// Presets: every file in resources/ can be read, and parameter totals are those that are published.
#include "core/base/diagnostic.h"
#include "core/design/stagecosts.h"
#include "core/model/transformer.h"
#include "core/presets/presets.h"
#include "testmain.h"
#include "testpaths.h"

#include <QTemporaryDir>
#include <QTest>

#include <fstream>

using namespace pipewright;

namespace {

PresetLibrary library()
{
    return PresetLibrary(std::string(PIPEWRIGHT_SOURCE_DIR) + "/resources");
}

/// The parameters that one token uses: of the experts only the chosen and the shared ones.
std::int64_t activeParameterCount(const Workload& workload)
{
    const ModelShape& shape = workload.shape;
    const std::int64_t idleExperts = shape.experts - shape.expertsPerToken;
    std::int64_t count = parameterCount(workload);
    for (int layer = 0; layer < shape.layers; ++layer)
        if (hasExperts(shape, layer))
            count -= idleExperts * shape.expertElements();
    return count;
}

std::string faultOf(const PresetLibrary& presets, std::string_view model)
{
    try {
        presets.model(model);
    } catch (const Error& error) {
        return error.what();
    }
    return {};
}

} // namespace

class TestPresets : public QObject {
    Q_OBJECT

private slots:
    void parameterTotalsAreExact_data()
    {
        QTest::addColumn<qint64>("total");
        QTest::addColumn<double>("activeBillions"); // 0: dense
        QTest::newRow("llama-3-8b") << qint64(8'030'261'248) << 0.0;
        QTest::newRow("llama-3-70b") << qint64(70'553'706'496) << 0.0;
        QTest::newRow("llama-3.1-405b") << qint64(405'853'388'800) << 0.0;
        QTest::newRow("gpt-3-175b") << qint64(174'604'259'328) << 0.0;
        QTest::newRow("qwen2.5-7b") << qint64(7'615'616'512) << 0.0;
        QTest::newRow("qwen2.5-32b") << qint64(32'763'876'352) << 0.0;
        QTest::newRow("qwen2.5-72b") << qint64(72'706'203'648) << 0.0;
        QTest::newRow("qwen3-8b") << qint64(8'190'735'360) << 0.0;
        QTest::newRow("qwen3-32b") << qint64(32'762'123'264) << 0.0;
        QTest::newRow("qwen3-30b-a3b") << qint64(30'532'122'624) << 3.35;
        QTest::newRow("qwen3-235b-a22b") << qint64(235'093'634'560) << 22.2;
        QTest::newRow("mixtral-8x7b") << qint64(46'702'792'704) << 12.88;
        QTest::newRow("deepseek-v2") << qint64(235'741'434'880) << 21.4;
        QTest::newRow("deepseek-v3") << qint64(671'026'419'200) << 37.55;
        QTest::newRow("bert-large") << qint64(335'141'888) << 0.0;
        QTest::newRow("vit-b-16") << qint64(86'567'656) << 0.0;
        QTest::newRow("vit-l-16") << qint64(304'326'632) << 0.0;
    }

    void parameterTotalsAreExact()
    {
        QFETCH(qint64, total);
        QFETCH(double, activeBillions);
        const Workload workload = library().workload(QTest::currentDataTag());
        QCOMPARE(qint64(parameterCount(workload)), total);
        if (activeBillions > 0)
            QVERIFY(std::abs(double(activeParameterCount(workload)) / 1e9 - activeBillions) < 0.051);
        else
            QCOMPARE(activeParameterCount(workload), parameterCount(workload));
        QCOMPARE(workload.source, std::string("preset ") + QTest::currentDataTag());
    }

    /// The models of the zero-bubble and controllable-memory tables are named by their size.
    void sizesAreThoseInTheirNames()
    {
        for (const char* size : {"1.5", "6.2", "9.6", "14.6", "21", "28.3", "38.5", "98.5"}) {
            const Workload workload = library().workload(std::string("gpt-") + size + "b");
            const double billions = double(parameterCount(workload)) / 1e9;
            const int digits = QString(size).section('.', 1).size();
            QCOMPARE(QString::number(billions, 'f', digits), QString(size));
        }
    }

    void everyPresetCanBeReadAndIsUsable()
    {
        const PresetLibrary presets = library();
        const auto models = presets.list(PresetKind::Model);
        QVERIFY(models.size() >= 17);
        const Cluster cluster = presets.cluster("h100-node", 2);
        for (const Preset& preset : models) {
            const Workload workload = presets.workload(preset.name);
            QCOMPARE(workload.shape.name, preset.name);
            QVERIFY(!preset.title.empty() && !preset.origin.empty());
            const Costs costs = formulaCosts(workload, evenPartition(workload, 2), cluster, {0, 1});
            QVERIFY(costs.stages[0].forward > 0 && costs.stages[1].savedUntilInputGrad > 0);
        }
        for (const Preset& preset : presets.list(PresetKind::Device)) {
            const DeviceSpec device = presets.device(preset.name);
            QVERIFY(device.peakFlops > 0 && device.memoryBandwidth > 0 && device.efficiency > 0
                    && device.efficiency <= 1);
        }
        for (const Preset& preset : presets.list(PresetKind::Cluster)) {
            const Cluster each = presets.cluster(preset.name);
            QCOMPARE(each.name, preset.name);
            QVERIFY(!each.devices.empty() && each.link.bandwidth > 0);
        }
    }

    void theDefaultModelTrainsHere()
    {
        const ModelShape shape = library().model("byte-gpt");
        QCOMPARE(shape, ModelShape{});
        QVERIFY(isRunnable(shape));
    }

    void aClusterCanHaveAnotherNumberOfDevices()
    {
        QCOMPARE(library().cluster("h100-node").devices.size(), std::size_t(8));
        const Cluster host = library().cluster("host", 7);
        QCOMPARE(host.devices.size(), std::size_t(7));
        QCOMPARE(host.devices[6].name, std::string("CPU thread"));
        QCOMPARE(host.link.latency, Nanoseconds(5'000));
        QVERIFY_THROWS_EXCEPTION(Error, library().cluster("host", -1));
    }

    void anUnknownNameGetsTheNearestOrAllKnownOnes()
    {
        QVERIFY(faultOf(library(), "lama-3-8b").find("did you mean \"llama-3-8b\"?") != std::string::npos);
        QVERIFY(faultOf(library(), "zzzzzzzzzzzz").find("byte-gpt") != std::string::npos);
        QVERIFY(!faultOf(library(), "../models/byte-gpt").empty());
    }

    void aBadPresetNamesItsLine()
    {
        QTemporaryDir folder;
        QVERIFY(QDir(folder.path()).mkpath("models"));
        std::ofstream(folder.filePath("models/bad.json").toStdString())
            << "{\n  \"name\": \"bad\",\n  \"layres\": 3\n}\n";
        const PresetLibrary presets(folder.path().toStdString());
        const std::string fault = faultOf(presets, "bad");
        QVERIFY(fault.find("bad.json:3: error: unknown key \"layres\" (did you mean \"layers\"?)")
                != std::string::npos);
        QCOMPARE(presets.list(PresetKind::Model).size(), std::size_t(1));
        QVERIFY(presets.list(PresetKind::Device).empty());
    }

    void theResourceFolderCanBeGivenByEnvironment()
    {
        qputenv("PIPEWRIGHT_RESOURCES", PIPEWRIGHT_SOURCE_DIR "/resources");
        QCOMPARE(findResourceDirectory(), std::string(PIPEWRIGHT_SOURCE_DIR "/resources"));
        qputenv("PIPEWRIGHT_RESOURCES", "/nowhere/at/all");
        QVERIFY_THROWS_EXCEPTION(Error, findResourceDirectory());
        qunsetenv("PIPEWRIGHT_RESOURCES");
        QVERIFY(!findResourceDirectory().empty());
    }
};

PIPEWRIGHT_TEST(TestPresets, NoApplication)
#include "tst_presets.moc"
