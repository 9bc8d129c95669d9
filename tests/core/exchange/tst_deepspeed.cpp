// SPDX-License-Identifier: GPL-3.0-or-later
// A design as a configuration of DeepSpeed.
#include "core/design/designbuilder.h"
#include "core/exchange/exchange.h"
#include "testmain.h"

#include <QJsonDocument>
#include <QJsonObject>
#include <QTest>

using namespace pipewright;

namespace {

QJsonObject configOf(const Design& design)
{
    return QJsonDocument::fromJson(QByteArray::fromStdString(exportFormat("deepspeed").write(design, {}).text))
        .object();
}

bool warns(const Design& design, std::string_view about)
{
    for (const Diagnostic& each : exportFormat("deepspeed").write(design, {}).diagnostics)
        if (each.severity == Severity::Warning && each.what.find(about) != std::string::npos)
            return true;
    return false;
}

Design designFor(const std::function<void(DesignRequest&)>& change = {})
{
    DesignRequest request;
    request.family = "1f1b";
    request.devices = 4;
    request.microbatches = 16;
    request.model = "llama-3-8b";
    request.cluster = "h100-nodes";
    request.parallel = Parallelism{.data = 4};
    request.zero.level = 1;
    if (change)
        change(request);
    return makeDesign(request);
}

} // namespace

class DeepspeedTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void aPlanBecomesAConfiguration()
    {
        const Design design = designFor([](DesignRequest& r) {
            r.recompute = RecomputeChoice{Recompute::every(2), {}};
        });
        const QJsonObject config = configOf(design);
        QCOMPARE(config["train_batch_size"].toInt(), config["train_micro_batch_size_per_gpu"].toInt() * 16 * 4);
        QCOMPARE(config["gradient_accumulation_steps"].toInt(), 16);
        QVERIFY(config["bf16"].toObject()["enabled"].toBool());
        QCOMPARE(config["zero_optimization"].toObject()["stage"].toInt(), 1);
        QCOMPARE(config["pipeline"].toObject()["stages"].toInt(), 4);
        QCOMPARE(config["pipeline"].toObject()["activation_checkpoint_interval"].toInt(), 2);
        QVERIFY(exportFormat("deepspeed").write(design, {}).diagnostics.empty());
    }

    void whatDeepSpeedDoesOtherwiseIsWarnedOf()
    {
        const Design shared = designFor([](DesignRequest& r) { r.zero.level = 3; });
        QVERIFY(warns(shared, "share out the optimizer's state at most"));
        QCOMPARE(configOf(shared)["zero_optimization"].toObject()["stage"].toInt(), 1);
        const Design alone = designFor([](DesignRequest& r) {
            r.zero.level = 3;
            r.devices = 1;
        });
        QVERIFY(exportFormat("deepspeed").write(alone, {}).diagnostics.empty());
        QCOMPARE(configOf(alone)["zero_optimization"].toObject()["stage"].toInt(), 3);
        QVERIFY(!configOf(alone).contains("pipeline"));
        QVERIFY(warns(designFor([](DesignRequest& r) { r.family = "zb-h1"; }), "the order is not 1F1B"));
        QVERIFY(warns(designFor([](DesignRequest& r) {
                          r.family = "interleaved-1f1b";
                          r.chunks = 2;
                      }),
                      "the order is not 1F1B"));
        QVERIFY(warns(designFor([](DesignRequest& r) {
                          r.family = "combined-1f1b"; // its pairs on one device too
                          r.devices = r.chunks.emplace(1);
                      }),
                      "the order is not 1F1B"));
        QVERIFY(warns(designFor([](DesignRequest& r) { r.parallel->tensor = 2; }), "says nothing of tensor 2"));
        QVERIFY(warns(designFor([](DesignRequest& r) {
                          r.recompute = RecomputeChoice{Recompute::Full, {{0, 1}}};
                      }),
                      "recomputes"));
    }
};

PIPEWRIGHT_TEST(DeepspeedTest, NoApplication)
#include "tst_deepspeed.moc"
