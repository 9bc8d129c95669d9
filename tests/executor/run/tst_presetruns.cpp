// SPDX-License-Identifier: GPL-3.0-or-later
// The models that people design for, made small: every part that they have, trained through pipelines.
#include "core/design/designbuilder.h"
#include "core/families/family.h"
#include "core/model/transformer.h"
#include "core/predict/scaledmodel.h"
#include "core/presets/presets.h"
#include "errorof.h"
#include "executor/run/run.h"
#include "sanitized.h"
#include "testmain.h"

#include <QTest>

#include <algorithm>
#include <iterator>

using namespace pipewright;

namespace {

/// Every size that the model has, smaller; what it has none of stays so.
std::string smallScale(const ModelShape& shape)
{
    std::string scale = "layers=6,hidden=24,heads=4,ffn=20,vocabulary=256,sequence=12,microbatch_size=1,"
                        "dropout=off";
    scale += shape.keyValueHeads == shape.heads ? ",key_value_heads=4" : ",key_value_heads=2";
    scale += ",head_size=6";
    if (shape.experts > 0)
        scale += ",experts=8,experts_per_token=3,expert_ffn=10";
    if (shape.denseLayers > 0)
        scale += ",dense_layers=1";
    if (shape.routerGroups > 1)
        scale += ",router_groups=4,router_groups_per_token=2";
    if (shape.keyValueLatent > 0)
        scale += ",query_latent=8,key_value_latent=7,rotary_head_size=4,value_head_size=5";
    if (shape.patchElements > 0)
        scale += ",patch_elements=12,vocabulary=10,sequence=10"; // three by three patches and the class token
    return scale;
}

/// Sanitizers see these four and, of the others, one in seven of each row.
bool isLeftOut(const Family& family, int row)
{
    constexpr std::string_view always[] = {"1f1b", "zb-h1", "v-half", "interleaved-1f1b"};
    return (threadSanitized || addressSanitized) && std::ranges::find(always, family.name) == std::end(always)
           && (&family - families().data() + row) % 7 != 0;
}

} // namespace

class TestPresetRuns : public QObject {
    Q_OBJECT

private slots:
    void everyPresetTrainsAtReducedSize_data()
    {
        QTest::addColumn<QByteArray>("preset");
        QTest::addColumn<QByteArray>("type");
        QTest::addColumn<int>("row");
        int row = 0; // so that each sanitizer sees both types
        for (const Preset& preset : PresetLibrary().list(PresetKind::Model)) {
            for (const char* type : {"fp32", "bf16"})
                if (!leftOut(row++))
                    QTest::addRow("%s in %s", preset.name.c_str(), type)
                        << QByteArray::fromStdString(preset.name) << QByteArray(type) << row;
            --row;
        }
    }
    void everyPresetTrainsAtReducedSize()
    {
        QFETCH(QByteArray, preset);
        QFETCH(QByteArray, type);
        QFETCH(int, row);
        const ModelShape full = PresetLibrary().model(preset.toStdString());
        const bool classifier = full.architecture == Architecture::Classifier;
        for (const Family& family : families()) {
            if (isLeftOut(family, row))
                continue;
            DesignRequest request;
            request.family = family.name;
            request.devices = 2;
            request.microbatches = 4;
            request.model = preset.toStdString();
            RunOptions options;
            options.steps = 2;
            options.maths = RunOptions::Maths::Training;
            options.runtime.checkMemory = true;
            RunResult result;
            const std::string refused = test::errorOf([&] {
                const std::string scale = classifier ? "hidden=16,ffn=20" : smallScale(full);
                result =
                    run(scaledDesign(makeDesign(request), scale + ",data_type=" + type.toStdString()).design, options);
            });
            // Others than decoders look into later pieces, too; who updates stage by stage shares no table among them.
            const bool cannotBe = (family.cutsSequences && full.architecture != Architecture::Decoder)
                                  || (family.updates && full.tiedHead && !classifier);
            QVERIFY2(refused.empty() == !cannotBe, (std::string(family.name) + ": " + refused).c_str());
            if (cannotBe)
                continue;
            const bool saidSo = std::any_of(result.notes.begin(), result.notes.end(),
                                            [](const Diagnostic& note) { return note.where == "model.widened"; });
            QCOMPARE(saidSo, type == "bf16"); // what is computed in fp32 copies, and nothing is in silence
            QVERIFY2(result.gradients->bitEqual, result.gradients->worst.c_str());
            QCOMPARE(result.peakBytes, result.predictedPeakBytes);
            for (std::size_t d = 0; d < result.heldBytes.size(); ++d)
                QCOMPARE(result.heldBytes[d], result.memory[d].total());
        }
    }

    void aSmallLlamaTrainsWithoutBeingTold()
    {
        DesignRequest request;
        request.family = "zb-h1";
        request.devices = 2;
        request.microbatches = 4;
        request.model = "byte-llama";
        RunOptions options;
        options.steps = 2;
        const RunResult result = run(makeDesign(request), options);
        QCOMPARE(result.maths, std::string("training"));
        QVERIFY(result.gradients->bitEqual);
        QVERIFY(result.losses[1] < result.losses[0] + 0.1);
    }
};

PIPEWRIGHT_TEST(TestPresetRuns, QCoreApplication)
#include "tst_presetruns.moc"
