// SPDX-License-Identifier: GPL-3.0-or-later
// Memory of runs that others have published: how their frameworks recompute and share out states, and what they keep
// besides.
#include "core/design/newdesign.h"
#include "core/design/redesign.h"
#include "core/model/transformer.h"
#include "core/predict/predict.h"
#include "core/predict/publishedruns.h"
#include "core/presets/presets.h"
#include "testmain.h"

#include <QTest>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

using namespace pipewright;

namespace {

double fullestGigabytes(const Design& design)
{
    Bytes most = 0;
    for (const DeviceMetrics& device : predict(design).metrics.devices)
        most = std::max(most, device.peakBytes);
    return static_cast<double>(most) / 1e9;
}

} // namespace

Q_DECLARE_METATYPE(Parallelism)

class PublishedMemoryTest : public QObject {
    Q_OBJECT

private slots:
    /// BigScience's plans for 194 billion parameters on A100s of 80 GB ("chronicles-prequel" of tr11): tensor 8,
    /// pipeline 6, data 8, the optimizer's state shared out, every layer recomputed.
    void bigScience_data()
    {
        QTest::addColumn<int>("microbatch");
        QTest::addColumn<double>("gigabytes");
        QTest::newRow("1") << 1 << 39.0;
        QTest::newRow("2") << 2 << 45.0;
        QTest::newRow("4") << 4 << 56.0;
        QTest::newRow("8") << 8 << 75.0;
    }
    void bigScience()
    {
        QFETCH(int, microbatch);
        QFETCH(double, gigabytes);
        ModelShape shape;
        shape.name = "BigScience 194B";
        shape.layers = 78;
        shape.hidden = 14400;
        shape.heads = shape.keyValueHeads = 96;
        shape.headSize = 150;
        shape.ffn = 4 * shape.hidden;
        shape.vocabulary = 250880;
        shape.sequence = 2048;
        shape.microbatchSize = microbatch;
        shape.dataType = DataType::Bf16;
        shape.attention = AttentionMemory::Stored;
        shape.parallel.tensor = 8;
        shape.parallel.data = 8;
        NewDesign choice;
        choice.workload = makeWorkload(shape, Optimizer::AdamW, "published");
        choice.cluster = PresetLibrary().cluster("a100-nodes", 6, shape.parallel.devicesPerStage());
        choice.family = "1f1b";
        choice.devices = 6;
        choice.microbatches = 48;
        choice.zero.level = 1;
        const Design kept = designFromModel(choice);
        const auto gigabytesWith = [&](Recompute recompute) {
            return fullestGigabytes(withRecompute(kept, std::vector<Recompute>(6, recompute)));
        };
        const double predicted = gigabytesWith(Recompute::Full);
        QVERIFY2(std::abs(predicted / gigabytes - 1) < 0.05,
                 qPrintable(QString("%1 GB, %2 published").arg(predicted).arg(gigabytes)));
        // R blocks, which have all layers of a stage at once, would not have fit at 8.
        QCOMPARE(gigabytesWith(Recompute::Block) > 80, microbatch == 8);
    }

    /// Megatron-LM on B200, as SimuMax's authors measured it (allocated, by rank): bf16, fp32 gradients, distributed
    /// optimizer, flash attention, fused cross entropy, context parallelism by all-to-all, balanced experts.
    void megatronOnB200_data()
    {
        QTest::addColumn<std::string>("model");
        QTest::addColumn<int>("layers");
        QTest::addColumn<Parallelism>("parallel");
        QTest::addColumn<int>("sequence");
        QTest::addColumn<std::vector<double>>("gibibytes"); // of the first and the last stage
        QTest::addColumn<double>("reserved");               // of the fullest rank
        const auto row = [](const char* name, const std::string& model, int layers, const Parallelism& parallel,
                            int sequence, std::vector<double> measured, double reserved) {
            QTest::newRow(name) << model << layers << parallel << sequence << measured << reserved;
        };
        const std::string small = "llama-3-70b", large = "llama-3.1-405b", experts = "deepseek-v2";
        row("70B, pipeline 2, data 4", small, 12, {.data = 4}, 4096, {66.55, 62.97}, 70.88);
        row("70B, tensor 2, data 4", small, 12, {.tensor = 2, .sequence = true, .data = 4}, 4096, {60.68}, 62.53);
        row("70B, tensor 4, data 2", small, 12, {.tensor = 4, .sequence = true, .data = 2}, 4096, {39.07}, 40.18);
        row("70B, tensor 8", small, 12, {.tensor = 8, .sequence = true}, 4096, {28.29}, 29.12);
        row("70B, tensor 2, context 4", small, 12, {.tensor = 2, .sequence = true, .context = 4}, 32768, {68.43},
            70.33);
        row("70B, context 8", small, 12, {.context = 8}, 32768, {104.51}, 111.94);
        row("405B, pipeline 2, data 4", large, 4, {.data = 4}, 4096, {86.61, 87.08}, 92.26);
        row("DeepSeek-V2, expert 8", experts, 4, {.expert = 8, .data = 8}, 4096, {45.63}, 48.79);
        row("DeepSeek-V2, pipeline 2, expert 4", experts, 4, {.expert = 4, .data = 4}, 4096, {31.58, 44.70}, 47.05);
    }
    void megatronOnB200()
    {
        QFETCH(std::string, model);
        QFETCH(int, layers);
        QFETCH(Parallelism, parallel);
        QFETCH(int, sequence);
        QFETCH(std::vector<double>, gibibytes);
        QFETCH(double, reserved);
        ModelShape shape = trainedOnB200(model, layers);
        shape.sequence = sequence;
        shape.parallel = parallel;
        const auto stages = static_cast<int>(gibibytes.size());
        const Metrics metrics = predict(published(shape, "1f1b", stages, 4)).metrics;
        Bytes fullest = 0;
        for (int s = 0; s < stages; ++s) {
            const Bytes peak = metrics.devices[static_cast<std::size_t>(s)].peakBytes;
            fullest = std::max(fullest, peak);
            const double predicted = static_cast<double>(peak) / (1 << 30);
            const double measured = gibibytes[static_cast<std::size_t>(s)];
            QVERIFY2(std::abs(predicted / measured - 1) < 0.01,
                     qPrintable(QString("stage %1: %2 GiB, %3 measured").arg(s).arg(predicted).arg(measured)));
        }
        const double taken = static_cast<double>(reservedBytes(fullest, shape.framework)) / (1 << 30);
        QVERIFY2(std::abs(taken / reserved - 1) < 0.04,
                 qPrintable(QString("%1 GiB reserved, %2 measured").arg(taken).arg(reserved)));
    }

    /// Peaks of arXiv 2411.05288, tables 5 and 6 (GiB), for vocabularies from 32k to 256k: ratios to the first. Their
    /// pretrain_gpt.sh: fp16, whose gradients are summed in fp16, a separate head, flash attention, no dropout.
    void growingVocabulary_data()
    {
        QTest::addColumn<std::string>("family");
        QTest::addColumn<int>("devices");
        QTest::addColumn<int>("layers");
        QTest::addColumn<int>("heads");
        QTest::addColumn<int>("hidden");
        QTest::addColumn<std::vector<double>>("peaks");
        QTest::newRow("1F1B 8") << std::string("1f1b") << 8 << 32 << 24 << 3072
                                << std::vector<double>{14.86, 16.32, 19.25, 25.64};
        QTest::newRow("1F1B 16") << std::string("1f1b") << 16 << 48 << 32 << 4096
                                 << std::vector<double>{24.03, 25.98, 29.92, 38.71};
        QTest::newRow("V-Half 16") << std::string("v-half") << 16 << 32 << 32 << 4096
                                   << std::vector<double>{15.57, 19.77, 28.55, 46.77};
    }
    void growingVocabulary()
    {
        QFETCH(std::string, family);
        QFETCH(int, devices);
        QFETCH(int, layers);
        QFETCH(int, heads);
        QFETCH(int, hidden);
        QFETCH(std::vector<double>, peaks);
        ModelShape shape;
        shape.layers = layers;
        shape.heads = shape.keyValueHeads = heads;
        shape.hidden = hidden;
        shape.headSize = hidden / heads;
        shape.ffn = 4 * shape.hidden;
        shape.sequence = 2048;
        shape.microbatchSize = 1;
        shape.dataType = DataType::Bf16; // fp16 takes as much
        shape.attention = AttentionMemory::Streamed;
        shape.tiedHead = false;
        shape.framework = {.narrowGradients = true, .vocabularyMultiple = 128, .wholeVocabularyGradients = true};
        double first = 0;
        for (std::size_t i = 0; i < peaks.size(); ++i) {
            shape.vocabulary = 32768LL << i;
            const double predicted = fullestGigabytes(published(shape, family, devices, 128));
            first = i == 0 ? predicted : first;
            const double ratio = predicted / first, measured = peaks[i] / peaks.front();
            QVERIFY2(std::abs(ratio / measured - 1) < 0.03,
                     qPrintable(QString("%1 times that of 32k, %2 measured").arg(ratio).arg(measured)));
        }
    }
};

PIPEWRIGHT_TEST(PublishedMemoryTest, NoApplication)
#include "tst_publishedmemory.moc"
