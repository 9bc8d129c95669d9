// SPDX-License-Identifier: GPL-3.0-or-later
// Runs on Hopper that others have published, predicted with rates by operation and shape that were measured elsewhere.
// Nothing is fitted on them. tst_publishedplans has those that came with a whole configuration.
#include "core/base/textfile.h"
#include "core/design/redesign.h"
#include "core/model/transformer.h"
#include "core/predict/predict.h"
#include "core/predict/throughput.h"
#include "makers/designs.h"
#include "testmain.h"
#include "testpaths.h"

#include <fmt/format.h>

#include <QTest>

#include <cmath>
#include <string>

using namespace pipewright;

namespace {

void isOnThePage(const std::string& line)
{
    const std::string page =
        readTextFile(std::string(PIPEWRIGHT_SOURCE_DIR) + "/resources/experiments/published-steps-hopper.md");
    QVERIFY2(page.find(line) != std::string::npos, line.c_str());
}

/// Llama 3's paper (arXiv 2407.21783), table 4. How many stages it has on a device is not said; with 8 the 126 layers,
/// embedding and head are one to a stage.
Design llama(const Parallelism& parallel, int microbatches, int sequence, bool rated)
{
    DesignRequest request = test::requestFor("interleaved-1f1b", 16, microbatches);
    request.chunks = 8;
    request.model = "llama-3.1-405b";
    request.cluster = "h100-nodes";
    request.sequence = sequence;
    request.microbatchSize = 1;
    request.parallel = parallel;
    request.parallel->data = 1; // the preset ends at 512 nodes
    if (!rated)
        request.efficiency = 0.5;
    Design design = makeDesign(request);
    design.cluster.nodes.count = 2048;
    return withParallelism(design, parallel);
}

/// FLOPs of the model as its masks have them, backward twice the forward, over those of whole squares.
double maskedShare(const Design& design)
{
    double masked = 0, whole = 0;
    for (const Layer& layer : wholeLayersOf(*design.workload)) {
        const double all = layer.forwardFlops + layer.inputGradFlops + layer.weightGradFlops;
        masked += all;
        whole += all;
        for (const AttentionSize& size : layer.attentions) {
            masked += 2 * size.flops() - size.backwardFlops();
            whole += 3 * size.wholeFlops() - size.flops() - size.backwardFlops();
        }
    }
    return masked / whole;
}

double utilizationOf(const Design& design)
{
    return modelFlopsUtilization(design, predict(design).metrics.makespan) * maskedShare(design);
}

struct Run {
    const char* name;
    Parallelism parallel;
    int microbatches, sequence;
    double utilization; ///< published
    double allowed;     ///< of the step's time
};

const std::vector<Run> runs = {
    {"Llama 3 405B, 8,192 GPUs", {.tensor = 8, .sequence = true, .data = 64}, 32, 8192, 0.43, 0.25},
    {"Llama 3 405B, 16,384 GPUs", {.tensor = 8, .sequence = true, .data = 128}, 16, 8192, 0.41, 0.25},
    {"Llama 3 405B, 131,072 tokens", {.tensor = 8, .sequence = true, .context = 16, .data = 8}, 16, 131072, 0.38, 0.25},
};

/// Milliseconds of a pass's parts, of computing or of exchanges.
double partsOf(const StageCosts& stage, Op pass, bool exchanges)
{
    Nanoseconds sum = 0;
    for (const BlockPart& part : stage.parts[indexOf(pass)])
        if ((part.stream == PartStream::Communication) == exchanges)
            sum += part.time;
    return static_cast<double>(sum) / 1e6;
}

/// Shares of the peak; errors are of the step's time.
void compare(const char* name, double published, double plain, double rated, double allowed)
{
    const double error = published / rated - 1;
    isOnThePage(fmt::format("| {} | bf16 | {:.1f} % | {:.1f} % | {:+.1f} % | {:.1f} % | {:+.1f} % |", name,
                            100 * published, 100 * plain, 100 * (published / plain - 1), 100 * rated, 100 * error));
    QVERIFY2(std::abs(error) < allowed, name);
}

} // namespace

class PublishedHopperTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void llama3_data()
    {
        QTest::addColumn<int>("run");
        for (int i = 0; i < static_cast<int>(runs.size()); ++i)
            QTest::newRow(runs[static_cast<std::size_t>(i)].name) << i;
    }
    void llama3()
    {
        QFETCH(int, run);
        const Run& of = runs[static_cast<std::size_t>(run)];
        const auto share = [&](bool rated) {
            return utilizationOf(llama(of.parallel, of.microbatches, of.sequence, rated));
        };
        compare(of.name, of.utilization, share(false), share(true), of.allowed);
    }

    /// Megatron-LM's README on strong scaling: the model on 96 H100, 1,152 sequences of 4,096 tokens, 47 % counted with
    /// whole squares. The degrees are not printed: 8 for tensors and 12 stages of 8 layers fit.
    void gpt3()
    {
        const auto share = [](bool rated) {
            DesignRequest request = test::requestFor("interleaved-1f1b", 12, 1152);
            request.chunks = 8;
            request.model = "gpt-3-175b";
            request.cluster = "h100-nodes";
            request.sequence = 4096;
            request.framework = frameworkNamed("megatron");
            request.parallel = Parallelism{.tensor = 8, .sequence = true};
            if (!rated)
                request.efficiency = 0.5;
            const Design design = makeDesign(request);
            return modelFlopsUtilization(design, predict(design).metrics.makespan);
        };
        compare("GPT-3 175B, 96 GPUs", 0.47, share(false), share(true), 0.14);
    }

    /// DeepSeek's own profile of a forward beside a backward, four layers with experts each, on H800: github.com/
    /// deepseek-ai/profile-data at 4496024. The ms in which kernels computed, those of all that sent and combined
    /// tokens, and what is predicted of both.
    void deepSeeksProfile()
    {
        constexpr double computing = 124.3, exchanging = 80.4, multiprocessors = 132. / 112;
        DesignRequest request = test::requestFor("1f1b", 16, 64);
        request.model = "deepseek-v3";
        request.cluster = "h800-nodes";
        request.sequence = 4096;
        request.precision = precisionNamed("fp8");
        request.parallel = Parallelism{.expert = 64, .data = 64, .nodeDispatch = true};
        const Design design = makeDesign(request);
        constexpr std::size_t stage = 8;
        QCOMPARE(design.layersPerStage[stage], 4);
        const StageCosts& costs = design.costs.stages[stage];
        const double computes = partsOf(costs, Op::F, false) + partsOf(costs, Op::B, false),
                     exchanges = partsOf(costs, Op::F, true) + partsOf(costs, Op::B, true);
        isOnThePage(fmt::format("| computing | {:.1f} | {:.1f} | {:+.0f} % |", computing, computes,
                                100 * (computes / computing - 1)));
        isOnThePage(fmt::format("| computing, with 112 of 132 multiprocessors | {:.1f} | {:.1f} | {:+.0f} % |",
                                computing, computes * multiprocessors,
                                100 * (computes * multiprocessors / computing - 1)));
        isOnThePage(fmt::format("| exchanges of tokens | {:.1f} | {:.1f} | {:+.0f} % |", exchanging, exchanges,
                                100 * (exchanges / exchanging - 1)));
        QVERIFY(std::abs(computes * multiprocessors / computing - 1) < 0.1);
    }
};

PIPEWRIGHT_TEST(PublishedHopperTest, NoApplication)
#include "tst_publishedhopper.moc"
