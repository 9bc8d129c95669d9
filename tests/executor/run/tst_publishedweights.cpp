// SPDX-License-Identifier: GPL-3.0-or-later
// Weights in the layout of published models: names and cuts as they are there, and everything comes back the same.
#include "core/base/diagnostic.h"
#include "core/base/textfile.h"
#include "core/model/transformer.h"
#include "executor/run/publishedparts.h"
#include "executor/run/publishedweights.h"
#include "executor/run/run.h"
#include "executor/stage/counterrandom.h"
#include "makers/faults.h"
#include "makers/models.h"
#include "testmain.h"

#include <QTemporaryDir>
#include <QTest>

#include <algorithm>
#include <bit>
#include <cmath>

using namespace pipewright;

namespace {

ModelShape mixtral()
{
    ModelShape shape = test::llamaShape();
    shape.experts = 3;
    shape.expertsPerToken = 2;
    shape.expertFfn = 5;
    return shape;
}

ModelShape deepseek()
{
    ModelShape shape = mixtral();
    shape.sharedExperts = shape.denseLayers = 1;
    shape.routerBias = true;
    shape.headSize = 4;
    shape.rotaryHeadSize = 2;
    shape.valueHeadSize = 3;
    shape.keyValueLatent = 7;
    shape.queryLatent = 5;
    shape.keyValueHeads = shape.heads;
    return shape;
}

ModelShape gptOss()
{
    ModelShape shape = mixtral();
    shape.activation = Activation::ClampedSilu;
    shape.attentionSinks = shape.queryKeyValueBias = shape.projectionBias = shape.expertBias = true;
    return shape;
}

ModelShape vit()
{
    ModelShape shape = test::visionShape();
    shape.patchElements = 2 * 2 * 3;
    return shape;
}

ParameterLayout wholeOf(const ModelShape& shape)
{
    const Workload workload = test::workloadOf(shape);
    return {workload, 0, int(workload.layers.size())};
}

std::vector<float> someValues(std::size_t count)
{
    std::vector<float> values(count);
    for (std::size_t i = 0; i < count; ++i)
        values[i] = float(CounterRandom(5, "weights").normal(i));
    return values;
}

} // namespace

class TestPublishedWeights : public QObject {
    Q_OBJECT

private slots:
    void everythingComesBackTheSame_data()
    {
        QTest::addColumn<ModelShape>("shape");
        QTest::addColumn<QString>("name");
        QTest::addColumn<QString>("extents");
        ModelShape qwen = test::llamaShape();
        qwen.queryKeyNorm = qwen.queryKeyValueBias = qwen.tiedHead = true;
        QTest::newRow("GPT-2") << test::smallShape() << "transformer.h.1.attn.c_attn.weight"
                               << "12 36";
        QTest::newRow("Llama") << test::llamaShape() << "model.layers.1.self_attn.k_proj.weight"
                               << "12 12";
        QTest::newRow("Qwen") << qwen << "model.layers.0.self_attn.q_proj.bias"
                              << "24";
        QTest::newRow("Mixtral") << mixtral() << "model.layers.0.block_sparse_moe.experts.2.w2.weight"
                                 << "12 5";
        QTest::newRow("DeepSeek") << deepseek() << "model.layers.1.self_attn.kv_b_proj.weight"
                                  << "28 7";
        QTest::newRow("GPT-OSS") << gptOss() << "model.layers.1.mlp.experts.gate_up_proj"
                                 << "3 12 10";
        QTest::newRow("BERT") << test::encoderShape() << "bert.encoder.layer.1.attention.self.key.weight"
                              << "12 12";
        QTest::newRow("BERT with its pooler") << test::encoderShape(2, false) << "bert.pooler.dense.weight"
                                              << "12 12";
        QTest::newRow("ViT") << vit() << "vit.embeddings.patch_embeddings.projection.weight"
                             << "12 3 2 2";
    }
    void everythingComesBackTheSame()
    {
        QFETCH(ModelShape, shape);
        QFETCH(QString, name);
        QFETCH(QString, extents);
        const ParameterLayout whole = wholeOf(shape);
        std::vector<float> values = someValues(whole.count());
        if (const Parameter* head = whole.headMatrix()) { // one matrix, held twice
            const auto embedding = whole.embeddingMatrix()->in(std::span(values));
            std::copy(embedding.begin(), embedding.end(), head->in(std::span(values)).begin());
        }
        QTemporaryDir folder;
        const std::string path = folder.filePath("model.safetensors").toStdString();
        Safetensors written;
        addPublished(written, shape, whole, values);
        writeFileAtomically(path, written.bytes(), false);

        const SafetensorsFile file = SafetensorsFile::open(path);
        QVERIFY2(file.has(name.toStdString()), qPrintable(name));
        QStringList found;
        for (const std::int64_t extent : file.shape(name.toStdString()))
            found.append(QString::number(extent));
        QCOMPARE(found.join(' '), extents);
        QVERIFY(unusedTensors(file, shape, whole).empty());
        QCOMPARE(file.has("lm_head.weight"), shape.architecture == Architecture::Decoder && !shape.tiedHead);
        const Workload workload = test::workloadOf(shape);
        std::vector<float> read;
        for (const auto& [first, last] : {std::pair{0, 2}, {2, int(workload.layers.size())}}) { // two stages
            const ParameterLayout stage(workload, first, last);
            std::vector<float> part(stage.count(), NAN);
            readPublished(file, shape, stage, part);
            read.insert(read.end(), part.begin(), part.end());
        }
        QCOMPARE(read, values);
    }

    void queryKeyAndValueAreCutWhereTheirHeadsEnd()
    {
        const ModelShape shape = test::llamaShape(1);
        const ParameterLayout whole = wholeOf(shape);
        const auto parts = publishedParts(shape, whole.at(1, "qkv.weight"));
        QCOMPARE(parts.size(), std::size_t(3));
        QCOMPARE(parts[1].name, std::string("model.layers.0.self_attn.k_proj.weight"));
        QCOMPARE(parts[1].ours.first, std::int64_t(24 * 12)); // behind four heads of six
        QCOMPARE(parts[1].rows, std::int64_t(12));            // two heads
    }

    void valuesOfALatentStandBehindTheirHeadsKeys()
    {
        const ModelShape shape = deepseek();
        const auto parts = publishedParts(shape, wholeOf(shape).at(1, "keyValueLatent.weight"));
        QCOMPARE(parts.size(), std::size_t(2 * shape.heads));
        QCOMPARE(parts[3].ours.first, std::int64_t((4 * 4 + 3) * 7)); // the second head's values, behind all keys
        QCOMPARE(parts[3].theirs.first, std::int64_t((7 + 4) * 7));   // and behind its own
    }

    void otherPrecisionsAreWidened()
    {
        // bf16 1.5 and -2, fp16 0.333251953125 and its smallest number.
        const std::string header = R"({"a":{"dtype":"BF16","shape":[2],"data_offsets":[0,4]},)"
                                   R"("b":{"dtype":"F16","shape":[2],"data_offsets":[4,8]}})";
        std::string bytes(8, '\0');
        bytes[0] = char(header.size());
        bytes += header + std::string("\xc0\x3f\x00\xc0\x55\x35\x01\x00", 8);
        QTemporaryDir folder;
        const std::string path = folder.filePath("two.safetensors").toStdString();
        writeFileAtomically(path, bytes, false);
        const SafetensorsFile file = SafetensorsFile::open(folder.path().toStdString());
        QCOMPARE(file.values("a"), std::vector<float>({1.5f, -2}));
        QCOMPARE(file.values("b"), std::vector<float>({0.333251953125f, 0x1p-24f}));
    }

    void filesThatAreNoneAreRefused_data()
    {
        QTest::addColumn<QByteArray>("bytes");
        const auto file = [](const QByteArray& header, int data) {
            return QByteArray(1, char(header.size())) + QByteArray(7, '\0') + header + QByteArray(data, 'x');
        };
        QTest::newRow("empty") << QByteArray();
        QTest::newRow("a header longer than the file") << QByteArray("\xff\xff\xff\xff\0\0\0\0{}", 10);
        QTest::newRow("no JSON") << file("hello", 0);
        QTest::newRow("no place") << file(R"({"a":{"dtype":"F32","shape":[1]}})", 4);
        QTest::newRow("outside") << file(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 4);
        QTest::newRow("another shape") << file(R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", 8);
        QTest::newRow("a huge shape") << file(
            R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", 0);
    }
    void filesThatAreNoneAreRefused()
    {
        QFETCH(QByteArray, bytes);
        QTemporaryDir folder;
        const std::string path = folder.filePath("bad.safetensors").toStdString();
        writeFileAtomically(path, bytes.toStdString(), false);
        QVERIFY(test::faultOf([&] { SafetensorsFile::open(path); }).find("bad.safetensors") != std::string::npos);
    }

    void aRunBeginsWithWeightsAndWritesThem()
    {
        ModelShape shape = test::llamaShape(4);
        shape.vocabulary = 256;
        const Design design = test::tinyDesign("1f1b", 2, 4, shape);
        QTemporaryDir folder;
        RunOptions options;
        options.steps = 20;
        options.saveWeights = folder.filePath("trained.safetensors").toStdString();
        const RunResult first = run(design, options);
        RunOptions again;
        again.steps = 2;
        again.weights = options.saveWeights;
        again.saveWeights = folder.filePath("again.safetensors").toStdString();
        const RunResult second = run(design, again);
        QVERIFY(second.gradients->bitEqual);
        QVERIFY(second.losses.front() < first.losses.front() - 0.1); // it goes on, from where the first run ended
        QVERIFY(SafetensorsFile::open(again.saveWeights).has("model.norm.weight"));

        // Another model's weights are no business of this one.
        shape.hidden = 16;
        again.saveWeights.clear();
        const std::string fault = test::faultOf([&] { run(test::tinyDesign("1f1b", 2, 4, shape), again); });
        QVERIFY2(fault.find("is of 256 x 12, and the model's is of 256 x 16") != std::string::npos, fault.c_str());
    }

    void whatNobodyPublishesIsRefused()
    {
        ModelShape shape = test::llamaShape();
        shape.gatedMlp = false;
        const ParameterLayout whole = wholeOf(shape);
        QVERIFY(test::faultOf([&] { publishedParts(shape, whole.at(1, "fc1.weight")); }).find("no published layout")
                != std::string::npos);
    }
};

PIPEWRIGHT_TEST(TestPublishedWeights, QCoreApplication)
#include "tst_publishedweights.moc"
