// SPDX-License-Identifier: GPL-3.0-or-later
// A person's own models: published configurations as facts, tables of layers, and what is refused.
#include "core/design/designbuilder.h"
#include "core/design/redesign.h"
#include "core/design/stagecosts.h"
#include "core/files/designfile.h"
#include "core/model/layertable.h"
#include "core/model/transformer.h"
#include "core/presets/modelfile.h"
#include "core/presets/modeljson.h"
#include "core/presets/presets.h"
#include "testmain.h"

#include <QTemporaryDir>
#include <QTest>

#include <fstream>
#include <nlohmann/json.hpp>

using namespace pipewright;

namespace {

Workload workloadOf(const std::string& text, const std::string& name)
{
    const ModelFile file = readModelFile(text, name);
    return makeWorkload(file.shape, Optimizer::AdamW, file.source);
}

std::string faultsOf(const std::string& text, const std::string& name)
{
    try {
        readModelFile(text, name);
    } catch (const Error& error) {
        return error.what();
    }
    return "nothing was refused";
}

const std::string table = "layer,forward,input_grad,weight_grad,saved,parameters,output,note\n"
                          "embed,1ms,0ms,2ms,1MiB,4MiB,1MiB,mine\n"
                          "a,3ms,3ms,2ms,2MiB,4MiB,1MiB,mine\n"
                          "b,3ms,3ms,2ms,2MiB,4MiB,1MiB,mine\n"
                          "c,3ms,3ms,2ms,2MiB,4MiB,1MiB,mine\n"
                          "head,2ms,2ms,2ms,2MiB,4MiB,4B,mine\n";

} // namespace

class TestModelFile : public QObject {
    Q_OBJECT

private slots:
    void publishedConfigurationsHaveThePublishedParameters_data()
    {
        QTest::addColumn<QString>("config");
        QTest::addColumn<qint64>("total");
        const auto row = [](const char* name, qint64 total, const char* config) {
            QTest::newRow(name) << QString(config) << total;
        };
        row("Llama 3 8B", 8'030'261'248,
            R"({"model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32,
                "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256, "attention_bias": false,
                "tie_word_embeddings": false, "max_position_embeddings": 8192, "torch_dtype": "bfloat16"})");
        row("Llama 3.2 1B", 1'235'814'400,
            R"({"model_type": "llama", "hidden_size": 2048, "num_hidden_layers": 16, "num_attention_heads": 32,
                "num_key_value_heads": 8, "head_dim": 64, "intermediate_size": 8192, "vocab_size": 128256,
                "mlp_bias": false, "tie_word_embeddings": true, "torch_dtype": "bfloat16"})");
        row("Qwen2.5 7B", 7'615'616'512,
            R"({"model_type": "qwen2", "hidden_size": 3584, "num_hidden_layers": 28, "num_attention_heads": 28,
                "num_key_value_heads": 4, "intermediate_size": 18944, "vocab_size": 152064,
                "tie_word_embeddings": false, "use_sliding_window": false, "sliding_window": 131072,
                "torch_dtype": "bfloat16"})");
        row("Qwen2.5 0.5B", 494'032'768,
            R"({"model_type": "qwen2", "hidden_size": 896, "num_hidden_layers": 24, "num_attention_heads": 14,
                "num_key_value_heads": 2, "intermediate_size": 4864, "vocab_size": 151936,
                "tie_word_embeddings": true, "torch_dtype": "bfloat16"})");
        row("Qwen3 8B", 8'190'735'360,
            R"({"model_type": "qwen3", "hidden_size": 4096, "num_hidden_layers": 36, "num_attention_heads": 32,
                "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 12288, "vocab_size": 151936,
                "attention_bias": false, "tie_word_embeddings": false, "torch_dtype": "bfloat16"})");
        row("Qwen3 30B-A3B", 30'532'122'624,
            R"({"model_type": "qwen3_moe", "hidden_size": 2048, "num_hidden_layers": 48, "num_attention_heads": 32,
                "num_key_value_heads": 4, "head_dim": 128, "intermediate_size": 6144, "moe_intermediate_size": 768,
                "num_experts": 128, "num_experts_per_tok": 8, "decoder_sparse_step": 1, "mlp_only_layers": [],
                "vocab_size": 151936, "tie_word_embeddings": false, "torch_dtype": "bfloat16"})");
        row("Mixtral 8x7B", 46'702'792'704,
            R"({"model_type": "mixtral", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32,
                "num_key_value_heads": 8, "intermediate_size": 14336, "num_local_experts": 8, "sliding_window": null,
                "num_experts_per_tok": 2, "vocab_size": 32000, "tie_word_embeddings": false,
                "torch_dtype": "bfloat16"})");
        row("DeepSeek-V3", 671'026'419'200,
            R"({"model_type": "deepseek_v3", "hidden_size": 7168, "num_hidden_layers": 61, "num_attention_heads": 128,
                "num_key_value_heads": 128, "intermediate_size": 18432, "moe_intermediate_size": 2048,
                "n_routed_experts": 256, "n_shared_experts": 1, "num_experts_per_tok": 8, "moe_layer_freq": 1,
                "first_k_dense_replace": 3, "q_lora_rank": 1536, "kv_lora_rank": 512, "qk_nope_head_dim": 128,
                "qk_rope_head_dim": 64, "v_head_dim": 128, "num_nextn_predict_layers": 1, "attention_bias": false,
                "vocab_size": 129280, "tie_word_embeddings": false, "torch_dtype": "bfloat16"})");
        row("GPT-2", 124'439'808,
            R"({"model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12, "n_positions": 1024,
                "vocab_size": 50257, "resid_pdrop": 0.1})");
        row("GPT-2 XL", 1'557'611'200,
            R"({"model_type": "gpt2", "n_embd": 1600, "n_layer": 48, "n_head": 25, "n_ctx": 1024,
                "vocab_size": 50257})");
        row("BLOOM 560M", 559'214'592,
            R"({"model_type": "bloom", "n_embed": 1024, "n_layer": 24, "num_attention_heads": 16, "offset_alibi": 100,
                "seq_length": 2048, "vocab_size": 250880, "attention_dropout": 0.0, "hidden_dropout": 0.0})");
        row("BLOOM 176B", 176'247'271'424,
            R"({"model_type": "bloom", "hidden_size": 14336, "n_layer": 70, "n_head": 112, "vocab_size": 250880,
                "attention_softmax_in_fp32": true, "slow_but_exact": false, "torch_dtype": "bfloat16"})");
        row("Gemma 2B", 2'506'172'416,
            R"({"model_type": "gemma", "hidden_size": 2048, "num_hidden_layers": 18, "num_attention_heads": 8,
                "num_key_value_heads": 1, "head_dim": 256, "intermediate_size": 16384, "vocab_size": 256000,
                "torch_dtype": "bfloat16"})");
        row("Gemma 7B", 8'537'680'896,
            R"({"model_type": "gemma", "hidden_size": 3072, "num_hidden_layers": 28, "num_attention_heads": 16,
                "num_key_value_heads": 16, "head_dim": 256, "intermediate_size": 24576, "vocab_size": 256000,
                "torch_dtype": "bfloat16"})");
        row("Gemma 2 2B", 2'614'341'888,
            R"({"model_type": "gemma2", "hidden_size": 2304, "num_hidden_layers": 26, "num_attention_heads": 8,
                "num_key_value_heads": 4, "head_dim": 256, "intermediate_size": 9216, "vocab_size": 256000,
                "sliding_window": 4096, "torch_dtype": "float32"})");
        row("Gemma 3 1B", 999'885'952,
            R"({"model_type": "gemma3_text", "hidden_size": 1152, "num_hidden_layers": 26, "num_attention_heads": 4,
                "num_key_value_heads": 1, "head_dim": 256, "intermediate_size": 6912, "vocab_size": 262144,
                "sliding_window": 512, "torch_dtype": "bfloat16"})");
        row("GPT-OSS 20B", 20'914'757'184,
            R"({"model_type": "gpt_oss", "hidden_size": 2880, "num_hidden_layers": 24, "num_attention_heads": 64,
                "num_key_value_heads": 8, "head_dim": 64, "intermediate_size": 2880, "num_local_experts": 32,
                "num_experts_per_tok": 4, "vocab_size": 201088, "attention_bias": true, "sliding_window": 128,
                "tie_word_embeddings": false, "torch_dtype": "bfloat16"})");
        row("GPT-OSS 120B", 116'829'156'672,
            R"({"model_type": "gpt_oss", "hidden_size": 2880, "num_hidden_layers": 36, "num_attention_heads": 64,
                "num_key_value_heads": 8, "head_dim": 64, "intermediate_size": 2880, "num_local_experts": 128,
                "num_experts_per_tok": 4, "vocab_size": 201088, "attention_bias": true, "sliding_window": 128,
                "tie_word_embeddings": false, "torch_dtype": "bfloat16"})");
    }

    void publishedConfigurationsHaveThePublishedParameters()
    {
        QFETCH(QString, config);
        QFETCH(qint64, total);
        const Workload workload = workloadOf(config.toStdString(), "some/model/config.json");
        QCOMPARE(qint64(parameterCount(workload)), total);
        QCOMPARE(workload.shape.name, std::string("model"));
    }

    /// A configuration of a preset's model is that preset, but for its name.
    void aConfigurationOfAPresetsModelIsThatPreset()
    {
        const ModelFile file = readModelFile(
            R"({"model_type": "qwen3", "hidden_size": 4096, "num_hidden_layers": 36, "num_attention_heads": 32,
                "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 12288, "vocab_size": 151936,
                "tie_word_embeddings": false, "torch_dtype": "bfloat16"})",
            "qwen3-8b.json");
        QCOMPARE(makeWorkload(file.shape, Optimizer::AdamW, "").layers, PresetLibrary().workload("qwen3-8b").layers);
    }

    void whatTheMathsNeedsIsKept()
    {
        const auto shapeOf = [](const char* config) { return readModelFile(config, "config.json").shape; };
        const ModelShape llama = shapeOf(
            R"({"model_type": "llama", "hidden_size": 16384, "num_hidden_layers": 126, "num_attention_heads": 128,
                "num_key_value_heads": 8, "intermediate_size": 53248, "vocab_size": 128256, "rms_norm_eps": 1e-05,
                "rope_theta": 500000.0, "hidden_act": "silu", "tie_word_embeddings": false,
                "rope_scaling": {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                                 "original_max_position_embeddings": 8192, "rope_type": "llama3"}})");
        const ModelShape preset = PresetLibrary().model("llama-3.1-405b");
        QVERIFY(llama.rotary == preset.rotary);
        QCOMPARE(llama.normEpsilon, preset.normEpsilon);
        QCOMPARE(llama.activation, Activation::Silu);

        // Newer files have both in one object.
        const ModelShape newer = shapeOf(
            R"({"model_type": "mistral", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
                "num_key_value_heads": 2, "intermediate_size": 96, "vocab_size": 256, "sliding_window": 4096,
                "rope_parameters": {"rope_type": "linear", "factor": 2.0, "rope_theta": 20000.0}})");
        QVERIFY(newer.rotary == (Rotary{.base = 20'000, .scaling = Rotary::Scaling::Linear, .factor = 2}));
        QCOMPARE(newer.window, std::int64_t(4096));

        const ModelShape deepseek = shapeOf(
            R"({"model_type": "deepseek_v3", "hidden_size": 7168, "num_hidden_layers": 61, "num_attention_heads": 128,
                "num_key_value_heads": 128, "intermediate_size": 18432, "moe_intermediate_size": 2048,
                "n_routed_experts": 256, "n_shared_experts": 1, "num_experts_per_tok": 8, "first_k_dense_replace": 3,
                "q_lora_rank": 1536, "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
                "v_head_dim": 128, "vocab_size": 129280, "n_group": 8, "topk_group": 4, "norm_topk_prob": true,
                "routed_scaling_factor": 2.5, "rms_norm_eps": 1e-06, "rope_theta": 10000,
                "rope_scaling": {"type": "yarn", "factor": 40, "beta_fast": 32, "beta_slow": 1, "mscale": 1.0,
                                 "mscale_all_dim": 1.0, "original_max_position_embeddings": 4096}})");
        const ModelShape published = PresetLibrary().model("deepseek-v3");
        QVERIFY(std::abs(deepseek.rotary.attentionFactor - published.rotary.attentionFactor) < 1e-12);
        Rotary same = deepseek.rotary;
        same.attentionFactor = published.rotary.attentionFactor;
        QVERIFY(same == published.rotary);
        QCOMPARE(deepseek.routerScore, RouterScore::Sigmoid);
        QCOMPARE(deepseek.routerScale, 2.5);
        QCOMPARE(deepseek.routerGroups, published.routerGroups);
        QCOMPARE(deepseek.routerGroupsPerToken, published.routerGroupsPerToken);

        // Gemma multiplies its embeddings.
        const ModelShape gemma = shapeOf(
            R"({"model_type": "gemma", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
                "num_key_value_heads": 1, "head_dim": 16, "intermediate_size": 96, "vocab_size": 256,
                "torch_dtype": "float32"})");
        QCOMPARE(gemma.embeddingScale, 8.0);
        QVERIFY(whyNotRunnable(gemma).empty());
        const ModelShape second = shapeOf(
            R"({"model_type": "gemma2", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
                "num_key_value_heads": 2, "head_dim": 16, "intermediate_size": 96, "vocab_size": 256,
                "query_pre_attn_scalar": 24, "attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0,
                "hidden_activation": "gelu_pytorch_tanh", "sliding_window": 8, "torch_dtype": "bfloat16"})");
        QCOMPARE(second.queryScale, 24.0);
        QCOMPARE(second.attentionSoftCap, 50.0);
        QCOMPARE(second.logitsSoftCap, 30.0);
        QVERIFY(second.postNorm && second.tiedHead && second.window == 8 && second.fullAttentionEvery == 2);
        QVERIFY(whyNotRunnable(second).empty());
        const ModelShape third = shapeOf(
            R"({"model_type": "gemma3_text", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
                "num_key_value_heads": 2, "head_dim": 16, "intermediate_size": 96, "vocab_size": 256,
                "query_pre_attn_scalar": 16, "rope_local_base_freq": 10000, "rope_theta": 1000000,
                "sliding_window": 8, "torch_dtype": "float32"})");
        QCOMPARE(third.localRotaryBase, 10'000.0);
        QCOMPARE(third.rotary.base, 1'000'000.0);
        QVERIFY(whyNotRunnable(third).empty());
        const ModelShape oss = shapeOf(
            R"({"model_type": "gpt_oss", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
                "num_key_value_heads": 2, "head_dim": 16, "intermediate_size": 96, "vocab_size": 256,
                "num_local_experts": 8, "num_experts_per_tok": 2, "attention_bias": true, "swiglu_limit": 7.0,
                "hidden_act": "silu", "router_aux_loss_coef": 0.9, "torch_dtype": "float32"})");
        QCOMPARE(oss.activation, Activation::ClampedSilu);
        QCOMPARE(oss.routerBalance, 0.9);
        QVERIFY(oss.attentionSinks && oss.expertBias && oss.routerBias);
        QVERIFY(whyNotRunnable(oss).empty());
    }

    void whatCannotBeExpressedIsRefusedByItsField_data()
    {
        QTest::addColumn<QString>("config");
        QTest::addColumn<QString>("said");
        const auto llama = [](const char* more) {
            return QString(R"({"model_type": "llama", "num_hidden_layers": 2,
"num_attention_heads": 4, "intermediate_size": 64, "vocab_size": 99)")
                   + more + "}";
        };
        QTest::newRow("biases of the MLP") << llama(R"(, "hidden_size": 16, "mlp_bias": true)") << "mlp_bias";
        QTest::newRow("a precision") << llama(R"(, "hidden_size": 16, "torch_dtype": "int8")") << "torch_dtype";
        QTest::newRow("an architecture")
            << R"({"model_type": "mamba", "hidden_size": 16, "vocab_size": 9})"
            << "\"mamba\" are not known here; of what describes a decoder it lacks num_hidden_layers, "
               "num_attention_heads, intermediate_size, num_key_value_heads";
        QTest::newRow("pictures and text") << R"({"model_type": "gemma3", "text_config": {}})"
                                           << "text_config";
        QTest::newRow("some layers without experts")
            << R"({"model_type": "qwen3_moe", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
"num_key_value_heads": 4, "intermediate_size": 64, "moe_intermediate_size": 32, "num_experts": 4,
"num_experts_per_tok": 2, "vocab_size": 99, "mlp_only_layers": [0]})"
            << "c.json:3: error: mlp_only_layers";
        QTest::newRow("a design") << R"({"schedule": {}})"
                                  << "this is a design";
        QTest::newRow("neither") << R"({"layers": 3})"
                                 << "name";
    }

    void whatCannotBeExpressedIsRefusedByItsField()
    {
        QFETCH(QString, config);
        QFETCH(QString, said);
        const QString faults = QString::fromStdString(faultsOf(config.toStdString(), "c.json"));
        QVERIFY2(faults.contains(said), qPrintable(faults));
        QVERIFY2(faults.startsWith("c.json"), qPrintable(faults));
    }

    void aTableOfLayersGivesTheStagesItsSums()
    {
        const ModelFile file = readModelFile(table, "mine.csv");
        QCOMPARE(file.shape.name, std::string("mine"));
        QCOMPARE(file.shape.table.size(), std::size_t(5));
        QTemporaryDir folder;
        const std::string path = folder.filePath("mine.csv").toStdString();
        std::ofstream(path) << table;
        DesignRequest request;
        request.family = "1f1b";
        request.devices = 2;
        request.microbatches = 4;
        request.model = path;
        const Design design = makeDesign(request);
        // 1 + 3 + 3 | 3 + 2 forward, and so on: the longest stage is shortest with the border behind "b".
        QCOMPARE(design.layersPerStage, (std::vector<int>{3, 2}));
        QCOMPARE(design.costs.stages[0].forward, Nanoseconds(7'000'000));
        QCOMPARE(design.costs.stages[0].inputGrad, Nanoseconds(6'000'000));
        QCOMPARE(design.costs.stages[1].weightGrad, Nanoseconds(4'000'000));
        QCOMPARE(design.costs.stages[1].savedUntilWeightGrad, Bytes(4 << 20));
        QCOMPARE(design.costs.stages[0].parameters, Bytes(12 << 20));
        QCOMPARE(design.costs.stages[0].output, Bytes(1 << 20));
        // The same in a design's file, and after it was recut.
        QCOMPARE(designFromJson(designToJson(design), "a.json"), design);
        QCOMPARE(withPartition(design, {1, 4}).costs.stages[0].forward, Nanoseconds(1'000'000));
        // What the table cannot follow is refused.
        request.sequence = 128;
        QVERIFY_THROWS_EXCEPTION(Error, makeDesign(request));
        request.sequence.reset();
        request.family = "seq1f1b";
        QVERIFY_THROWS_EXCEPTION(Error, makeDesign(request));
        request.family = "1f1b";
        request.parallel = Parallelism{.tensor = 2};
        QVERIFY_THROWS_EXCEPTION(Error, makeDesign(request));
    }

    void aUnitMayStandInTheHeader()
    {
        const std::string same =
            "layer,forward [ms],input_grad [ms],weight_grad[ us ],saved [MiB],parameters [MiB],output,note\n"
            "embed,1,0,2000,1,4,1MiB,mine\n"
            "a,3.0,3,2000,2,4096KiB,1MiB,mine\n"
            "b,3,3,2000,2,4,1MiB,mine\n"
            "c,3,3ms,2000,2,4,1MiB,mine\n"
            "head,2,2,2000,2,4,4B,mine\n";
        QVERIFY(readModelFile(same, "mine.csv").shape == readModelFile(table, "mine.csv").shape);
        QVERIFY(isModelText(same, "mine.csv"));
        const auto faults = [&](const std::string& from, const std::string& to) {
            return QString::fromStdString(
                faultsOf(std::string(same).replace(same.find(from), from.size(), to), "mine.csv"));
        };
        QVERIFY2(faults("forward [ms]", "forward").contains("mine.csv:2: error: cell 2, \"1\""),
                 qPrintable(faults("forward [ms]", "forward")));
        QVERIFY(faults("forward [ms]", "forward").contains("or give the unit once, in the header: forward [ms]"));
        QVERIFY(faults("saved [MiB]", "saved").contains("in the header: saved [MiB]"));
        QVERIFY(faults("[ms]", "[weeks]").contains("\"weeks\" is not a unit of a duration"));
    }

    void whatAutogradHoldsIsMoreColumns()
    {
        QVERIFY(!readModelFile(table, "old.csv").shape.autograd);
        std::string more = table;
        more.replace(more.find("note"), 4, "workspace_forward");
        for (std::size_t at; (at = more.find("mine")) != std::string::npos;)
            more.replace(at, 4, "3KiB");
        const ModelShape shape = readModelFile(more, "more.csv").shape;
        QVERIFY(shape.autograd);
        QCOMPARE(shape.table[1].autograd, (AutogradBytes{.workspaceForward = 3 << 10}));
        QVERIFY(
            faultsOf(more.replace(more.find("3KiB"), 4, "3KiBs"), "more.csv").starts_with("more.csv:2: error: cell 8"));
        const std::string file =
            R"({"name": "a", "architecture": "layers", "microbatch_size": 1, "data_type": "fp32", "autograd": true,
            "layer_table": [{"layer": "a", "forward": "1ms", "input_grad": "1ms", "weight_grad": "1ms", "saved": "8B",
            "parameters": "8B", "output": "8B", "kept_input": "5B"}]})";
        QCOMPARE(readModelFile(file, "a.json").shape.table[0].autograd, (AutogradBytes{.input = 5}));
        QVERIFY(faultsOf(std::string(file).replace(file.find("true"), 4, "false"), "a.json").find("kept_input")
                != std::string::npos);
    }

    /// A table's bytes hold for a device; how many copies of the pipeline share them out does not change them.
    void aTableOfLayersMayBeOfCopiesThatAreOnlyCounted()
    {
        const std::string file =
            R"({"name": "a", "architecture": "layers", "microbatch_size": 1, "data_type": "fp32",
            "layer_table": [{"layer": "a", "forward": "1ms", "input_grad": "1ms", "weight_grad": "1ms", "saved": "8B",
            "parameters": "80B", "output": "8B"}], "parallel": {"data": 4}})";
        const ModelShape shape = readModelFile(file, "a.json").shape;
        QCOMPARE(shape.parallel, Parallelism{.data = 4});
        QCOMPARE(shapeToJson(shape)["parallel"].dump(), std::string(R"({"data":4})"));
        Costs costs;
        applyBytes(makeWorkload(shape, Optimizer::AdamW, "a table"), {1}, {{}, Zero{.level = 3}}, costs);
        QCOMPARE(costs.stages[0].parameters, Bytes(20));
        QCOMPARE(costs.stages[0].gatheredParameters, Bytes(80));
        QVERIFY(checkShape(shape).empty());
        for (const Parallelism& other : {Parallelism{.tensor = 2}, {.context = 2}, {.expert = 2}, {.data = 0}}) {
            ModelShape wrong = shape;
            wrong.parallel = other;
            QVERIFY(hasErrors(checkShape(wrong)));
        }
    }

    void theLongestStageOfATableIsAsShortAsCanBe()
    {
        std::vector<Layer> layers(7);
        const int times[] = {9, 1, 1, 1, 1, 1, 9};
        for (std::size_t i = 0; i < layers.size(); ++i)
            layers[i].forwardTime = times[i];
        QCOMPARE(balancedPartition(layers, 3), (std::vector<int>{1, 5, 1}));
        QCOMPARE(balancedPartition(layers, 7), std::vector<int>(7, 1));
        QVERIFY_THROWS_EXCEPTION(Error, balancedPartition(layers, 8));
    }

    void aFaultyTableIsRefusedByLineAndCell_data()
    {
        QTest::addColumn<QString>("from");
        QTest::addColumn<QString>("to");
        QTest::addColumn<QString>("said");
        QTest::newRow("no unit") << "3ms,3ms,2ms"
                                 << "3,3ms,2ms"
                                 << "mine.csv:3: error: cell 2";
        QTest::newRow("a missing column") << "saved,"
                                          << "kept,"
                                          << "\"saved\" is missing";
        QTest::newRow("a column twice") << "note"
                                        << "layer"
                                        << "twice";
        QTest::newRow("a missing cell") << "4B,mine"
                                        << "4B"
                                        << "mine.csv:6: error: 7 cells under 8 columns";
        QTest::newRow("a week") << "3ms,3ms"
                                << "3ms,10080min"
                                << "more than a day";
        QTest::newRow("no layer") << table.substr(table.find('\n')).c_str() << "\n"
                                  << "0 layers";
    }

    void aFaultyTableIsRefusedByLineAndCell()
    {
        QFETCH(QString, from);
        QFETCH(QString, to);
        QFETCH(QString, said);
        const QString text = QString::fromStdString(table).replace(from, to);
        const QString faults = QString::fromStdString(faultsOf(text.toStdString(), "mine.csv"));
        QVERIFY2(faults.contains(said), qPrintable(faults));
    }

    void modelsAreToldFromDesignsAndSchedules()
    {
        QVERIFY(isModelText(table, "a.csv"));
        QVERIFY(isModelText(R"({"model_type": "llama"})", "a.json"));
        QVERIFY(isModelText(R"({"name": "x", "hidden": 3})", "a.json"));
        QVERIFY(!isModelText("0F0,0F1\n", "a.csv"));
        QVERIFY(!isModelText(R"({"pipewright": 1, "schedule": {}, "model": {}})", "a.json"));
        QVERIFY(!isModelText(R"({"traceEvents": []})", "a.json"));
    }

    void linearBiasesTakeThePlaceOfPositionsAndKeepTheirBytes()
    {
        const auto shapeOf = [](const std::string& fields) {
            return readModelFile(R"({"name": "small", "layers": 2, "hidden": 48, "heads": 4, "ffn": 96, "sequence": 16,
                                     "vocabulary": 256, "microbatch_size": 4, "data_type": "fp32",
                                     "bias": false, "learned_positions": false, )"
                                     + fields + "}",
                                 "model.json")
                .shape;
        };
        const ModelShape shape = shapeOf(R"("linear_biases": true)"), rotary = shapeOf(R"("tied_head": true)");
        QVERIFY(shape.linearBiases && !rotary.linearBiases);
        QVERIFY(whyNotRunnable(shape).empty());
        QCOMPARE(shapeToJson(shape)["linear_biases"].get<bool>(), true);
        std::vector<Layer> layers = layersOf(shape), rotated = layersOf(rotary);
        const auto moved = [](const Layer& layer) { return layer.moved[std::size_t(Movement::Elementwise)].forward; };
        QCOMPARE(moved(rotated[1]).kernels, moved(layers[1]).kernels + 2); // of queries and of keys
        for (std::vector<Layer>* each : {&layers, &rotated})
            for (Layer& layer : *each)
                layer.moved = {};
        QVERIFY(layers == rotated); // attention keeps nothing for them
        for (const char* fields :
             {R"("linear_biases": true, "local_rotary_base": 10)", R"("linear_biases": true, "attention_soft_cap": 2)",
              R"("linear_biases": true, "bidirectional": true)",
              R"("linear_biases": true, "rotary": {"base": 500000})"})
            QVERIFY_THROWS_EXCEPTION(Error, shapeOf(fields));
    }

    void aModelFileOfOursIsTakenByItsPath()
    {
        const std::string path = PresetLibrary().directory() + "/models/llama-3-8b.json";
        QCOMPARE(loadModel(path).shape, PresetLibrary().model("llama-3-8b"));
        QCOMPARE(loadModel("llama-3-8b").source, std::string("preset llama-3-8b"));
        // A name that no file can have is an unknown model like any other.
        QVERIFY_THROWS_EXCEPTION(Error, loadModel(std::string(300, 'x')));
    }
};

PIPEWRIGHT_TEST(TestModelFile, NoApplication)
#include "tst_modelfile.moc"
