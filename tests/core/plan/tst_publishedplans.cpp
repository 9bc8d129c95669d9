// SPDX-License-Identifier: GPL-3.0-or-later
// Ways to train that experts tuned: the rows for DGX-H100 of Megatron-Bridge's performance summary (docs/
// performance-summary.md and its archive, containers 25.09 and 25.11, Apache-2.0), tokens per second and GPU. Each is
// in the space, fits, and its throughput stands beside the published one.
//
// All rows but GPT-OSS ran in FP8, and are predicted so, at the preset's half of the peak. How much was recomputed is not printed: the faster
// kind that fits is taken.
#include "core/plan/plan.h"
#include "core/presets/modelfile.h"
#include "core/presets/presets.h"
#include "testmain.h"

#include <QTest>

#include <array>

using namespace pipewright;

namespace {

struct Row {
    const char* model; ///< empty: GPT-OSS 120B
    std::array<const char*, 7> pins;
    int devices, batch, sequence;
    const char* family;
    double published;   ///< tokens per second and GPU; 0: not in the space
    double least, most; ///< of it, predicted
};

constexpr Row rows[] = {
    {"",
     {"tensor=1", "pipeline=4", "context=1", "expert=8", "microbatch_size=4", "zero=1", "chunks=1"},
     64,
     512,
     4096,
     "1f1b",
     5630,
     0.9,
     1.1},
    {"llama-3-70b",
     {"tensor=4", "pipeline=8", "context=1", "expert=1", "microbatch_size=1", "zero=1", "chunks=5"},
     64,
     128,
     8192,
     "interleaved-1f1b",
     1602,
     0.87,
     0.93},
    {"llama-3.1-405b",
     {"tensor=8", "pipeline=8", "context=2", "expert=1", "microbatch_size=1", "zero=1", "chunks=8"},
     1024,
     512,
     8192,
     "interleaved-1f1b",
     292,
     0.93,
     1},
    {"deepseek-v3",
     {"tensor=2", "pipeline=8", "context=1", "expert=64", "microbatch_size=1", "zero=1", "chunks=4"},
     1024,
     8192,
     4096,
     "interleaved-1f1b",
     1297,
     0.45,
     0.6},
    // Megatron lays experts over the members of tensor parallelism, too; here they are shared by copies alone.
    {"qwen3-235b-a22b",
     {"tensor=2", "pipeline=8", "context=1", "expert=32", "microbatch_size=1", "zero=1", "chunks=4"},
     256,
     2048,
     4096,
     "interleaved-1f1b",
     0,
     0,
     0},
};

PlanRequest requestOf(const Row& row)
{
    static const PresetLibrary library;
    PlanRequest request;
    request.shape = *row.model != '\0'
                        ? library.model(row.model)
                        : readModelFile(R"({"model_type": "gpt_oss", "hidden_size": 2880, "num_hidden_layers": 36,
                              "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 64,
                              "intermediate_size": 2880, "num_local_experts": 128, "num_experts_per_tok": 4,
                              "vocab_size": 201088, "attention_bias": true, "sliding_window": 128,
                              "tie_word_embeddings": false, "torch_dtype": "bfloat16"})",
                                        "gpt-oss/config.json")
                              .shape;
    request.source = "a test";
    request.shape.sequence = row.sequence;
    request.shape.framework = *frameworkNamed("megatron");
    if (*row.model != '\0')
        request.shape.products = ProductType::Fp8;
    request.cluster = [](int pipeline, std::int64_t members) {
        return std::make_shared<const Cluster>(library.cluster("h100-nodes", pipeline, members));
    };
    request.devices = row.devices;
    request.batch = row.batch;
    request.families = {row.family};
    for (const char* each : row.pins)
        pin(request, each, "--pin");
    return request;
}

} // namespace

class PublishedPlansTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void tunedWaysAreInTheSpaceAndFit()
    {
        for (const Row& row : rows) {
            const PlanResult found = findPlans(requestOf(row));
            QVERIFY(found.complete);
            if (row.published == 0) {
                QVERIFY2(found.plans.empty() && !found.reasons.empty()
                             && found.reasons.begin()->first.find("cannot share out experts by 32")
                                    != std::string::npos,
                         row.model);
                continue;
            }
            QVERIFY2(!found.plans.empty(), row.model);
            const TrainingPlan& best = found.plans.front();
            const double share = best.tokensPerSecondPerDevice / row.published;
            qInfo("%s: %.0f tokens/s/GPU published, %.0f predicted (%+.1f %%), recompute %s, %.1f GiB",
                  *row.model != '\0' ? row.model : "gpt-oss-120b", row.published, best.tokensPerSecondPerDevice,
                  100 * (share - 1), nameOf(best.setting.recompute).c_str(),
                  static_cast<double>(best.peak) / static_cast<double>(Bytes{1} << 30));
            QVERIFY2(share >= row.least && share <= row.most, row.model);
        }
    }
};

PIPEWRIGHT_TEST(PublishedPlansTest, NoApplication)
#include "tst_publishedplans.moc"
