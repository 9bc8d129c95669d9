// SPDX-License-Identifier: GPL-3.0-or-later
// Ways to train that experts tuned: the rows for DGX-H100 of Megatron-Bridge's performance summary (docs/
// performance-summary.md and its archive, containers 25.09 and 25.11, Apache-2.0), tokens per second and GPU. Each is
// in the space, fits, and its throughput stands beside the published one.
//
// All rows but GPT-OSS ran in FP8, and are predicted so, at the preset's half of the peak. How much was recomputed is
// not printed: the faster kind that fits is taken. Of DeepSeek-V3 the second test says what it is short of.
#include "core/design/redesign.h"
#include "core/plan/plan.h"
#include "core/predict/predict.h"
#include "core/presets/modelfile.h"
#include "core/presets/presets.h"
#include "testmain.h"

#include <QTest>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <string_view>

using namespace pipewright;

namespace {

struct Row {
    const char* model; ///< empty: GPT-OSS 120B
    std::array<const char*, 8> pins;
    int devices, batch, sequence;
    const char* family;
    double published;   ///< tokens per second and GPU
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
     // Every layer is made again, for want of memory: bf16 parameters are counted beside their two copies in FP8, as
     // --fp8-format alone has them. With --fp8-param-gather there is no bf16, which is not modelled.
     0.68,
     0.74},
    {"deepseek-v3",
     {"tensor=2", "pipeline=8", "context=1", "expert=64", "folded_experts=yes", "microbatch_size=1", "zero=1",
      "chunks=4"},
     1024,
     8192,
     4096,
     "interleaved-1f1b",
     1297,
     0.45,
     0.6},
    {"qwen3-235b-a22b",
     {"tensor=2", "pipeline=8", "context=1", "expert=32", "folded_experts=yes", "microbatch_size=1", "zero=1",
      "chunks=4"},
     256,
     2048,
     4096,
     "interleaved-1f1b",
     1575,
     0.78,
     0.84},
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
        if (each != nullptr)
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

    // Of DeepSeek-V3's row three things make up what is predicted too slow, each of them a choice that the published
    // run made and the predicted plan cannot: products at FP8's rate; no layer made again whole, since Megatron-LM can
    // make single modules again, while here all or nothing of a layer is (nothing would take more memory than there
    // is); and the all-to-alls of tokens, two thirds of a forward at the network's data sheet, hidden behind computing.
    void whatDeepSeekIsShortOfIsFp8RecomputationAndExposedExchanges()
    {
        const Row& row = *std::find_if(std::begin(rows), std::end(rows),
                                       [](const Row& each) { return std::string_view(each.model) == "deepseek-v3"; });
        PlanRequest request = requestOf(row);
        const PlanResult fp8 = findPlans(request);
        request.shape.products = ProductType::Own;
        const PlanResult bf16 = findPlans(request);
        QVERIFY(fp8.plans.front().setting.recompute == Recompute::Full);
        const auto share = [&](const Design& design) {
            const double tokens = static_cast<double>(row.batch) * row.sequence / row.devices;
            return tokens / (static_cast<double>(predict(design).metrics.makespan) * 1e-9) / row.published;
        };
        const auto hidden = [](const Design& design) {
            Parallelism parallel = design.workload->shape.parallel;
            parallel.overlap = 1;
            return withParallelism(design, parallel);
        };
        const auto isAbout = [](double found, double expected) { return std::abs(found - expected) < 0.015; };
        const Design again = fp8.plans.front().design, kept = withRecompute(again, {});
        const double whole = share(bf16.plans.front().design), twice = share(again), none = share(kept),
                     overlapped = share(hidden(kept));
        qInfo(
            "of what was published: bf16 %.3f, FP8's rate %.3f, and nothing made again %.3f, and exchanges hidden %.3f",
            whole, twice, none, overlapped);
        QVERIFY(isAbout(whole, 0.426));
        QVERIFY(isAbout(twice, 0.503));
        QVERIFY(isAbout(none, 0.725));
        QVERIFY(isAbout(overlapped, 0.961));
        Bytes peak = 0;
        for (const DeviceMetrics& device : predict(kept).metrics.devices)
            peak = std::max(peak, device.peakBytes);
        QVERIFY(peak > kept.cluster.devices.front().memory);
    }
};

PIPEWRIGHT_TEST(PublishedPlansTest, NoApplication)
#include "tst_publishedplans.moc"
