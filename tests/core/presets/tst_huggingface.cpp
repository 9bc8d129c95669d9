// SPDX-License-Identifier: GPL-3.0-or-later
// Hugging Face configurations as people have them: heads by class, missing and renamed keys, windows by layer, keys
// that nobody knows. The right numbers are those of the transformers library; tests/torch/configurations.py compares
// all classes with it.
#include "core/model/transformer.h"
#include "core/presets/huggingfacetypes.h"
#include "core/presets/modelfile.h"
#include "core/presets/modeljson.h"
#include "testmain.h"

#include <QTest>

#include <nlohmann/json.hpp>

using namespace pipewright;

namespace {

const std::string llama3 = R"({"model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336,
"num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256,
"max_position_embeddings": 8192, "tie_word_embeddings": false, "dtype": "bfloat16")";
const std::string mistral = R"({"model_type": "mistral", "hidden_size": 4096, "intermediate_size": 14336,
"num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 32000,
"sliding_window": null, "dtype": "bfloat16")";
const std::string qwen2 = R"({"model_type": "qwen2", "hidden_size": 896, "intermediate_size": 4864,
"num_hidden_layers": 24, "num_attention_heads": 14, "num_key_value_heads": 2, "vocab_size": 151936,
"tie_word_embeddings": true, "dtype": "bfloat16")";

ModelFile fileOf(const std::string& text)
{
    return readModelFile(text, "config.json");
}

std::int64_t parametersOf(const std::string& text)
{
    return parameterCount(makeWorkload(fileOf(text).shape, Optimizer::AdamW, "test"));
}

/// The diagnostics for a text that is refused, or its notes.
QString said(const std::string& text)
{
    try {
        return QString::fromStdString(toString(fileOf(text).notes));
    } catch (const Error& error) {
        return QString::fromStdString(error.what());
    }
}

} // namespace

class TestHuggingFace : public QObject {
    Q_OBJECT

private slots:
    void theClassDecidesTheHead_data()
    {
        QTest::addColumn<std::string>("config");
        QTest::addColumn<qint64>("total");
        const auto row = [](const char* name, qint64 total, const std::string& config) {
            QTest::newRow(name) << config << total;
        };
        row("a text model", 8'030'261'248, llama3 + R"(, "architectures": ["LlamaForCausalLM"]})");
        row("no class", 8'030'261'248, llama3 + "}");
        row("a reward", 7'504'928'768,
            llama3 + R"(, "architectures": ["LlamaForSequenceClassification"], "id2label": {"0": "LABEL_0"}})");
        row("two classes of sequences, the library's default", 7'504'928'768 + 4096,
            llama3 + R"(, "architectures": ["LlamaForSequenceClassification"]})");
        row("nine classes of tokens", 7'504'924'672 + 9 * 4097,
            llama3 + R"(, "architectures": ["LlamaForTokenClassification"], "num_labels": 9})");
        row("where an answer begins and ends", 7'504'924'672 + 2 * 4097,
            llama3 + R"(, "architectures": ["LlamaForQuestionAnswering"], "num_labels": 9})");
        row("embeddings", 7'110'660'096, mistral + R"(, "architectures": ["MistralModel"]})");
        row("embeddings of a tied model", 494'032'768, qwen2 + R"(, "architectures": ["Qwen2Model"]})");
        row("a reward behind a square matrix", 494'032'768 + 896 * 897 + 897,
            qwen2 + R"(, "architectures": ["Qwen2ForRewardModel"]})");
        row("a reward of steps", 494'032'768 + 896 * 897 + 2 * 897,
            qwen2 + R"(, "architectures": ["Qwen2ForProcessRewardModel"]})");
        row("masked tokens", 109'514'298, R"({"model_type": "bert", "architectures": ["BertForMaskedLM"]})");
        row("a pooler", 109'482'240, R"({"model_type": "bert", "architectures": ["BertModel"]})");
        row("classes behind a pooler", 109'483'778,
            R"({"model_type": "bert", "architectures": ["BertForSequenceClassification"]})");
        row("classes without a pooler", 108'893'186,
            R"({"model_type": "bert", "architectures": ["BertForTokenClassification"]})");
    }

    void theClassDecidesTheHead()
    {
        QFETCH(std::string, config);
        QFETCH(qint64, total);
        QCOMPARE(qint64(parametersOf(config)), total);
        // A model file of ours says the same.
        const ModelShape shape = fileOf(config).shape;
        QVERIFY(readModelFile(shapeToJson(shape).dump(), "model.json").shape == shape);
    }

    void aHeadThatCannotBeTrainedIsPredictedAndSaysSo()
    {
        const ModelShape reward =
            fileOf(llama3 + R"(, "architectures": ["LlamaForSequenceClassification"], "num_labels": 1})").shape;
        QVERIFY(QString::fromStdString(toString(whyNotRunnable(reward))).contains("heads of labels"));
        QCOMPARE(reward.targets(), reward.microbatchSize);
        QVERIFY(layersOf(reward).back().forwardFlops < 1e9);
        QVERIFY(whyNotRunnable(fileOf(llama3 + "}").shape).empty());
        QVERIFY(said(llama3 + R"(, "architectures": ["LlamaForImages"]})").contains("\"LlamaForImages\""));
        QVERIFY(said(R"({"model_type": "gpt2", "architectures": ["GPT2DoubleHeadsModel"]})").contains("is not known"));
        QVERIFY(said(llama3 + R"(, "architectures": ["LlamaForMaskedLM"]})").contains("is not known"));
    }

    void missingAndRenamedKeysAreTheLibrarys_data()
    {
        QTest::addColumn<std::string>("config");
        QTest::addColumn<qint64>("total");
        QTest::newRow("Qwen3 without head_dim")
            << std::string(R"({"model_type": "qwen3", "hidden_size": 1024, "intermediate_size": 3072,
                "num_hidden_layers": 28, "num_attention_heads": 16, "num_key_value_heads": 8, "vocab_size": 151936,
                "tie_word_embeddings": true})")
            << qint64(596'049'920);
        QTest::newRow("Qwen3-MoE with num_local_experts")
            << std::string(R"({"model_type": "qwen3_moe", "hidden_size": 2048, "intermediate_size": 6144,
                "moe_intermediate_size": 768, "num_hidden_layers": 48, "num_attention_heads": 32,
                "num_key_value_heads": 4, "head_dim": 128, "num_local_experts": 128, "num_experts_per_tok": 8,
                "mlp_only_layers": [], "decoder_sparse_step": 1, "vocab_size": 151936,
                "tie_word_embeddings": false})")
            << qint64(30'532'122'624);
        QTest::newRow("the text_config of Gemma 3 4B")
            << std::string(R"({"hidden_size": 2560, "intermediate_size": 10240, "model_type": "gemma3_text",
                "num_hidden_layers": 34, "rope_scaling": {"factor": 8.0, "rope_type": "linear"},
                "sliding_window": 1024})")
            << qint64(3'880'263'168);
        QTest::newRow("nothing but a type") << std::string(R"({"model_type": "llama"})") << qint64(6'738'415'616);
        QTest::newRow("other names of GPT-2's keys")
            << std::string(R"({"model_type": "gpt2", "num_hidden_layers": 48, "hidden_size": 1600,
                "num_attention_heads": 25})")
            << qint64(1'557'611'200);
    }

    void missingAndRenamedKeysAreTheLibrarys()
    {
        QFETCH(std::string, config);
        QFETCH(qint64, total);
        QCOMPARE(qint64(parametersOf(config)), total);
    }

    void sizesThatAFileDoesNotStateAreNamed()
    {
        const QString notes = said(R"({"model_type": "mistral", "hidden_size": 4096, "num_hidden_layers": 40})");
        QVERIFY2(notes.contains("taken from the defaults of transformers 5.24.0"), qPrintable(notes));
        QVERIFY2(notes.contains("intermediate_size 14336") && !notes.contains("hidden_size 4096"), qPrintable(notes));
    }

    void positionsOfFullAndWindowedLayersMayDiffer()
    {
        const ModelShape third = fileOf(R"({"model_type": "gemma3_text", "rope_parameters":
            {"full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 2000000},
             "sliding_attention": {"rope_type": "default", "rope_theta": 20000}}})")
                                     .shape;
        QVERIFY(third.rotary == (Rotary{.base = 2'000'000, .scaling = Rotary::Scaling::Linear, .factor = 8}));
        QCOMPARE(third.localRotaryBase, 20'000.0);
        const ModelShape older = fileOf(R"({"model_type": "gemma3_text"})").shape;
        QCOMPARE(older.rotary.base, 1'000'000.0);
        QCOMPARE(older.localRotaryBase, 10'000.0);
        QCOMPARE(fileOf(R"({"model_type": "gpt_oss"})").shape.rotary.original, std::int64_t(4096));
    }

    void aKeyThatIsNotKnownIsNamedInANote()
    {
        for (const HuggingFaceType& type : huggingFaceTypes()) {
            const std::string start = "{\"model_type\": \"" + std::string(type.type) + "\", \"dtype\": \"float32\"";
            const QString without = said(start + "}"), with = said(start + ",\n\"rope_twist\": 1}");
            QVERIFY2(!without.contains("is not read"), qPrintable(without));
            QVERIFY2(with.contains("config.json:2: note: \"rope_twist\" is not read"), qPrintable(with));
        }
        QVERIFY(said(llama3 + R"(, "num_hiden_layers": 3})").contains("did you mean") == false); // both are there
        QVERIFY(
            said(R"({"model_type": "llama", "num_hiden_layers": 3})").contains("did you mean \"num_hidden_layers\""));
        // Read for other types.
        QVERIFY(said(qwen2 + R"(, "attention_bias": true})").contains("\"attention_bias\" is not read"));
        // Harmless with one value.
        QVERIFY(!said(llama3 + R"(, "attention_dropout": 0.0})").contains("attention_dropout"));
        QVERIFY(said(llama3 + R"(, "attention_dropout": 0.1})").contains("\"attention_dropout\": 0.1 is left out"));
        QVERIFY(said(llama3 + R"(, "rope_scaling": {"rope_type": "linear", "factor": 2, "twist": 1}})")
                    .contains("\"twist\" is not known for rotary positions"));
    }

    /// A value that no key may have is a fault, or is named, for every key of the tables: none is there to be ignored.
    void everyKeyOfAModelTypeIsRead()
    {
        for (const HuggingFaceType& type : huggingFaceTypes()) {
            const nlohmann::json defaults = nlohmann::json::parse(type.defaults);
            for (const auto& [key, value] : defaults.items()) {
                nlohmann::json config{{"model_type", type.type}, {"use_sliding_window", true}};
                config[key] = {{"strange", 1}};
                bool refused = false;
                try {
                    refused = toString(fileOf(config.dump()).notes).find("\"strange\"") != std::string::npos;
                } catch (const Error&) {
                    refused = true;
                }
                QVERIFY2(refused, qPrintable(QString::fromStdString(std::string(type.type) + ": " + key)));
            }
        }
    }

    void windowsMayDifferFromLayerToLayer()
    {
        const auto windows = [](const ModelShape& shape) {
            std::vector<std::int64_t> of;
            for (int layer = 0; layer < shape.layers; ++layer)
                of.push_back(windowOf(shape, layer));
            return of;
        };
        const ModelShape later =
            fileOf(qwen2 + R"(, "use_sliding_window": true, "sliding_window": 512, "max_window_layers": 22})").shape;
        std::vector<std::int64_t> expected(22, 0);
        expected.insert(expected.end(), {512, 512});
        QCOMPARE(windows(later), expected);
        QVERIFY(whyNotRunnable(later).empty());
        QVERIFY(readModelFile(shapeToJson(later).dump(), "model.json").shape == later);
        // Without use_sliding_window there are none, and where all layers come before the first window neither.
        QCOMPARE(fileOf(qwen2 + R"(, "sliding_window": 512})").shape.window, std::int64_t(0));
        QCOMPARE(fileOf(qwen2 + R"(, "use_sliding_window": true, "max_window_layers": 24})").shape.window,
                 std::int64_t(0));

        const std::string third = R"({"model_type": "gemma3_text", "num_hidden_layers": 4, "sliding_window": 8)";
        const ModelShape listed = fileOf(third + R"(, "layer_types": ["full_attention", "sliding_attention",
            "sliding_attention", "full_attention"]})")
                                      .shape;
        QCOMPARE(windows(listed), (std::vector<std::int64_t>{0, 8, 8, 0}));
        const ModelShape second = fileOf(third + R"(, "layer_types": ["sliding_attention", "full_attention",
            "sliding_attention", "full_attention"]})")
                                      .shape;
        QCOMPARE(second.fullAttentionEvery, 2);
        QVERIFY(second.fullAttentionLayers.empty());
        QVERIFY(said(third + R"(, "layer_types": ["full_attention"]})").contains("1 kinds for 4 layers"));
        QVERIFY(said(third + R"(, "layer_types": ["linear_attention", "full_attention", "full_attention",
            "full_attention"]})")
                    .contains("\"linear_attention\""));
    }

    void attentionThatLooksAheadIsPredictedAndNotTrained()
    {
        const ModelFile file = fileOf(R"({"model_type": "gemma3_text", "architectures": ["Gemma3ForCausalLM"],
            "hidden_size": 768, "sliding_window": 512, "use_bidirectional_attention": true})");
        QVERIFY(file.shape.bidirectional);
        QCOMPARE(file.shape.window, std::int64_t(257)); // to each side, as the library has it
        QVERIFY(QString::fromStdString(toString(file.notes)).contains("attend to later ones too"));
        QVERIFY(QString::fromStdString(toString(whyNotRunnable(file.shape))).contains("attention that looks back"));
    }
};

PIPEWRIGHT_TEST(TestHuggingFace, NoApplication)
#include "tst_huggingface.moc"
