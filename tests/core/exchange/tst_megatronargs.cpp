// SPDX-License-Identifier: GPL-3.0-or-later
// A design as arguments of Megatron-LM.
#include "core/design/designbuilder.h"
#include "core/exchange/exchange.h"
#include "testmain.h"

#include <QSet>
#include <QTest>

using namespace pipewright;

namespace {

QString textOf(const Design& design)
{
    return QString::fromStdString(exportFormat("megatron-args").write(design, {}).text);
}

bool warns(const Design& design, std::string_view about)
{
    for (const Diagnostic& each : exportFormat("megatron-args").write(design, {}).diagnostics)
        if (each.severity == Severity::Warning && each.what.find(about) != std::string::npos)
            return true;
    return false;
}

} // namespace

class MegatronArgsTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void aPlanBecomesMegatronsArguments()
    {
        DesignRequest request;
        request.family = "interleaved-1f1b";
        request.devices = 4;
        request.microbatches = 16;
        request.chunks = 2;
        request.model = "llama-3-70b";
        request.cluster = "h100-nodes";
        request.parallel = Parallelism{.tensor = 8, .sequence = true, .context = 2, .data = 4};
        request.zero.level = 1;
        request.recompute = RecomputeChoice{Recompute::every(2), {}};
        Design design = makeDesign(request);
        const QStringList lines = textOf(design).split('\n', Qt::SkipEmptyParts);
        const std::int64_t size = design.workload->shape.microbatchSize;
        for (const QString& line : {QString("--tensor-model-parallel-size 8"),
                                    QString("--sequence-parallel"),
                                    QString("--context-parallel-size 2"),
                                    QString("--pipeline-model-parallel-size 4"),
                                    QString("--microbatch-group-size-per-virtual-pipeline-stage 4"),
                                    QString("--micro-batch-size %1").arg(size),
                                    QString("--global-batch-size %1").arg(size * 16 * 4),
                                    QString("--bf16"),
                                    QString("--use-distributed-optimizer"),
                                    QString("--recompute-granularity full"),
                                    QString("--recompute-method uniform"),
                                    QString("--recompute-num-layers 2"),
                                    QString("--num-layers 80"),
                                    QString("--hidden-size 8192"),
                                    QString("--ffn-hidden-size 28672"),
                                    QString("--num-attention-heads 64"),
                                    QString("--group-query-attention"),
                                    QString("--num-query-groups 8"),
                                    QString("--kv-channels 128"),
                                    QString("--normalization RMSNorm"),
                                    QString("--swiglu"),
                                    QString("--disable-bias-linear"),
                                    QString("--untie-embeddings-and-output-weights"),
                                    QString("--position-embedding-type rope")})
            QVERIFY2(lines.contains(line), qPrintable(line + "\nin\n" + lines.join('\n')));
        QCOMPARE(lines.filter("--pipeline-model-parallel-layout").size(), 1);
        QCOMPARE(QSet<QString>(lines.begin(), lines.end()).size(), lines.size()); // each once
        for (const char* said : {"says nothing", "have no argument"})
            QVERIFY2(!warns(design, said), said);
        design.schedule.zero.level = 3;
        QVERIFY(warns(design, "shares out the optimizer's state alone"));
        design.schedule.recompute[0] = Recompute::None;
        QVERIFY(warns(design, "recomputes") && !textOf(design).contains("--recompute"));
        design.workload->shape.window = 4096;
        QVERIFY(warns(design, "have no argument"));
        // Products in FP8, and parameters that exist in FP8 alone.
        request.recompute.reset();
        request.framework = frameworkNamed("megatron");
        request.precision = precisionNamed("fp8");
        QVERIFY(textOf(makeDesign(request)).contains("--fp8-format hybrid\n"));
        QVERIFY(!textOf(makeDesign(request)).contains("--fp8-param-gather"));
        request.precision = precisionNamed("fp8-parameters");
        Design narrow = makeDesign(request);
        QVERIFY(textOf(narrow).contains("--fp8-format hybrid\n--fp8-param-gather\n"));
        QVERIFY(!warns(narrow, "distributed optimizer alone"));
        narrow.schedule.zero.level = 0;
        QVERIFY(warns(narrow, "distributed optimizer alone"));
        request.framework.reset();
        request.precision.reset();
        // A mixture of experts with latent attention.
        request.model = "deepseek-v3";
        request.family = "1f1b";
        request.chunks.reset();
        request.recompute.reset();
        request.parallel = Parallelism{.expert = 8, .data = 8};
        const QString experts = textOf(makeDesign(request));
        for (const char* part : {"--expert-model-parallel-size 8\n", "--num-experts 256\n", "--moe-router-topk 8\n",
                                 "--moe-layer-freq \"([0]*3+[1]*58)\"\n", "--multi-latent-attention\n",
                                 "--kv-lora-rank 512\n", "--moe-shared-expert-intermediate-size 2048\n"})
            QVERIFY2(experts.contains(part), qPrintable(QString(part) + "\nin\n" + experts));
        QVERIFY(!experts.contains("--expert-tensor-parallel-size")); // as many as --tensor-model-parallel-size
        request.parallel =
            Parallelism{.tensor = 4, .sequence = true, .context = 2, .expert = 32, .data = 4, .foldedExperts = true};
        const QString folded = textOf(makeDesign(request));
        for (const char* part : {"--tensor-model-parallel-size 4\n", "--context-parallel-size 2\n",
                                 "--expert-model-parallel-size 32\n", "--expert-tensor-parallel-size 1\n"})
            QVERIFY2(folded.contains(part), qPrintable(QString(part) + "\nin\n" + folded));
        request.model = "bert-large";
        request.parallel.reset();
        request.zero = {};
        QVERIFY_THROWS_EXCEPTION(Error, exportFormat("megatron-args").write(makeDesign(request), {}));
    }
};

PIPEWRIGHT_TEST(MegatronArgsTest, NoApplication)
#include "tst_megatronargs.moc"
