// SPDX-License-Identifier: GPL-3.0-or-later
// Blocks unfolded into kernels, kernels by group, and why a GPU did nothing. The records are made up in CUPTI's shape,
// but for those of one run on an H100, which are kept with the project.
#include "testmain.h"
#include "testpaths.h"
#include "traces/analysis/achievedrates.h"
#include "traces/analysis/blockkernels.h"
#include "traces/analysis/gpugaps.h"
#include "traces/store/gpurecording.h"
#include "traces/store/kernelname.h"

#include <QFile>
#include <QTest>

using namespace pipewright;
using namespace pipewright::test;

class TestBlockKernels : public QObject {
    Q_OBJECT

private:
    Folder m_folder;
    Design m_design = smallDesign();
    Prediction m_prediction = predict(m_design);
    const Program& m_program = m_prediction.program;
    const Timeline& m_timeline = m_prediction.timeline;

    GpuWork work(const char* name, const GpuShape& shape = {}) const
    {
        writeGpuRecording(m_folder / name, m_design, m_program, m_timeline, 1, shape);
        return TraceReader(m_folder / name).gpuWork(m_program, 0);
    }

    TaskId blockOf(Op op, int stage, int microbatch) const
    {
        for (TaskId id = 0; id < m_program.tasks.size(); ++id)
            if (const Task& t = m_program.tasks[id];
                t.kind == TaskKind::Compute && t.op == op && t.stage == stage && t.microbatch() == microbatch)
                return id;
        return none;
    }

    static std::string groupOf(const std::string& kernel, ActivityKind kind = ActivityKind::Kernel)
    {
        const KernelGroups& groups = KernelGroups::standard();
        return groups.names().at(groups.of(kind, kernel));
    }

    std::string faultOf(const char* name, const char* text) const
    {
        QFile file(QString::fromStdString(m_folder / name));
        if (!file.open(QIODevice::WriteOnly) || file.write(text) < 0)
            return "the test cannot write";
        file.close();
        return errorOf([&] { KernelGroups{m_folder / name}; });
    }

private Q_SLOTS:
    void kernelsHaveAGroupByTheirName_data()
    {
        QTest::addColumn<QString>("kernel");
        QTest::addColumn<QString>("group");
        const auto row = [](const char* kernel, const char* group) { QTest::newRow(kernel) << kernel << group; };
        row("ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", "communication");
        row("sm90_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x128x32_execute_kernel_cublas", "product");
        row("void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_128x128_nn_align4>(Params)", "product");
        row("void cublasLt::splitKreduce_kernel<32, 16, int, float>(float*)", "product");
        row("pipewright::kernels::cuda::products_cu::plainProduct(int, int, int)", "product");
        row("pipewright::kernels::cuda::attention_cu::forward(AttentionShape, float const*)", "attention");
        row("void flash::flash_fwd_kernel<Flash_fwd_kernel_traits<128> >(Flash_fwd_params)", "attention");
        row("pipewright::kernels::cuda::layernorm_cu::inputGradient(int, float const*)", "norm");
        row("void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float>(int)", "norm");
        row("pipewright::kernels::cuda::crossentropy_cu::softmaxRows(int, float*)", "loss");
        row("pipewright::kernels::cuda::embedding_cu::weightGradient(unsigned long)", "embedding");
        row("void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float> >(int)", "elementwise");
        row("pipewright::kernels::cuda::elementwise_cu::forEach<Gelu>(unsigned long, Gelu)", "elementwise");
        row("void pipewright::kernels::cuda::forLines<8, Gelu>(unsigned long, unsigned long, Gelu)", "elementwise");
        row("cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_128x128x128_4x1x1_kernel0_0",
            "attention");
        row("pipewright::kernels::cuda::spin_cu::spinUntil(long const*, long)", "timed work");
        row("pipewright::kernels::cuda::rotary_cu::turn(Rows, Pairs, float*)", "elementwise");
        row("pipewright::kernels::cuda::experts_cu::rowProducts(ExpertsShape, int const*)", "product");
        row("pipewright::kernels::cuda::routing_cu::giveRows(long, int const*)", "routing");
        row("aten::addmm", "product");
        row("aten::add_", "elementwise");
        row("aten::mul", "elementwise");
        row("aten::lerp_", "elementwise");
        row("aten::sum", "reduction");
        row("aten::t", "view"); // and no other name that begins so
        row("aten::tanh", "elementwise");
        row("aten::transpose", "view"); // of the program's own kernels one that moves values is called so
        row("aten::empty_strided", "view");
        row("aten::cat", "copy");
        row("aten::index_put_", "embedding");
        row("aten::_scaled_dot_product_flash_attention_for_cpu_backward", "attention");
        row("autograd::engine::evaluate_function: AddmmBackward0", "autograd");
        row("TransposeBackward0", "autograd");
        row("c10d::send", "communication");
        row("nobody knows this one", "other");
    }
    void kernelsHaveAGroupByTheirName()
    {
        QFETCH(QString, kernel);
        QFETCH(QString, group);
        QCOMPARE(QString::fromStdString(groupOf(kernel.toStdString())), group);
    }

    void copiesAreCopiesWhateverTheyAreCalled()
    {
        QCOMPARE(groupOf("gemm", ActivityKind::Memcpy), std::string("copy"));
        QCOMPARE(groupOf("set", ActivityKind::Memset), std::string("copy"));
    }

    void aTableOfGroupsIsReadStrictly()
    {
        QVERIFY(faultOf("a.json", R"({"rules": [{"group": "a"}]})").find("contains") != std::string::npos);
        QVERIFY(faultOf("b.json", R"({"rules": [{"group": "a", "contains": [""]}]})").find("not a list of parts")
                != std::string::npos);
        QVERIFY(faultOf("f.json", R"({"rules": [{"group": "a", "is": [7]}]})").find("not a list of names")
                != std::string::npos);
        QCOMPARE(faultOf("g.json", R"({"rules": [{"group": "a", "is": ["aten::add"]}]})"), std::string());
        QVERIFY(faultOf("c.json", R"({"rules": [], "colour": 1})").find("colour") != std::string::npos);
        QVERIFY(faultOf("d.json", R"({"rules": [{"group": "other", "contains": ["x"]}]})").find("no rule knows")
                != std::string::npos);
        QCOMPARE(faultOf("e.json", R"({"rules": [{"group": "mine", "contains": ["x"]}]})"), std::string());
    }

    void kernelsOfUnnamedNamespacesKeepTheirFile()
    {
        // As nvcc 13.0 named forward(int, float*) in an unnamed namespace of layernorm.cu.
        const std::string name = demangled("_ZN1a45_GLOBAL__N__ac75c795_12_layernorm_cu_35df7e147forwardEiPf");
        QCOMPARE(name, std::string("a::layernorm_cu::forward(int, float*)"));
        QCOMPARE(shortKernelName(name), std::string("layernorm forward"));
        QCOMPARE(demangled("_ZN12_GLOBAL__N_17forwardEi"), std::string("(anonymous namespace)::forward(int)"));
        QCOMPARE(shortKernelName("(anonymous namespace)::forward(int)"), std::string("forward"));
        QCOMPARE(shortKernelName("void at::native::unrolled<float, 4>(int)"), std::string("unrolled"));
        QCOMPARE(shortKernelName("sm90_xmma_gemm"), std::string("sm90_xmma_gemm"));
    }

    void aBlockUnfoldsIntoKernelsGapsAndGroups()
    {
        const TaskId late = blockOf(Op::F, 1, 2), usual = blockOf(Op::F, 1, 1);
        const GpuWork work = this->work("unfold.db", {.late = late});
        const auto blocks = blockKernels(m_program, work, m_timeline, KernelGroups::standard());
        for (const TaskId id : {late, usual}) {
            const BlockKernels& block = blocks[id];
            const Nanoseconds start = m_timeline.start[id], length = m_timeline.end[id] - start;
            QCOMPARE(block.kernels.size(), std::size_t{4});
            QCOMPARE(block.byEvents, length);
            QCOMPARE(block.byKernels, length * 860 / 1000); // four kernels and three gaps
            QCOMPARE(block.running, length * 800 / 1000);
            QCOMPARE(block.gaps.size(), std::size_t{4}); // the first before the first kernel
            QCOMPARE(block.gaps[0].start, start);
            QCOMPARE(block.gaps[0].end, start + length * 50 / 1000);
            QCOMPARE(block.gaps[2].end - block.gaps[2].start, length * 20 / 1000);
            QCOMPARE(block.gaps[2].launching, id == late ? length * 20 / 1000 - length / 200 : 0);
            QCOMPARE(block.launching, block.gaps[2].launching);
            QVERIFY(block.launchesKnown);
            QCOMPARE(block.groups.size(), std::size_t{4});
        }
        QVERIFY(blocks[late].launchBound() > 0.01 && blocks[usual].launchBound() == 0);
        const KernelTotals totals = totalsOf(m_program, blocks, work, m_timeline);
        QCOMPARE(totals.without, 0);
        QCOMPARE(totals.launching, blocks[late].launching);
        QCOMPARE(totals.overhead, 5'000);
        QCOMPARE(totals.groups[0].kernels, totals.blocks);
        QVERIFY(totals.byKernels < totals.byEvents);
        QVERIFY(blockTimesText(totals).find("(-14.0 %)") != std::string::npos);
        // Of a reader whose own times are those of kernels the totals are the same.
        const TraceReader byKernels(m_folder / "unfold.db", BlockTime::Kernels);
        QCOMPARE(kernelTotals(byKernels, m_program, 0)->byEvents, totals.byEvents);
    }

    void aCallThatWasNotRecordedIsNoLaunch()
    {
        GpuWork work = this->work("calls.db");
        const TaskId task = blockOf(Op::F, 0, 0);
        for (GpuWork::Slice& slice : work.slices)
            if (slice.task == task)
                slice.launched = GpuWork::unknown;
        const auto blocks = blockKernels(m_program, work, m_timeline, KernelGroups::standard());
        QVERIFY(!blocks[task].launchesKnown);
        QCOMPARE(blocks[task].launching, 0);
    }

    void theTimeOfADeviceAddsUpToTheStep()
    {
        for (const bool oneGpu : {false, true})
            for (const GpuGaps& gaps :
                 gpuGaps(m_program, work(oneGpu ? "one.db" : "two.db", {.oneGpu = oneGpu}), m_timeline)) {
                QVERIFY(gaps.recorded);
                QCOMPARE(gaps.running + gaps.lateData + gaps.link + gaps.host + gaps.otherSlice + gaps.other
                             + gaps.coolDown,
                         m_prediction.metrics.makespan);
            }
    }

    void aGapIsTheDatasTheLinksTheHostsOrAnotherSlices()
    {
        // Device 1 waits for F0.0 and then for its transfer. Of its block's first gap the host has 3/5, the rest is
        // device 0's, which works on the same GPU then.
        const TaskId first = blockOf(Op::F, 1, 0), before = blockOf(Op::F, 0, 0);
        const TaskId transfer = m_program.afterData[first];
        QVERIFY(m_program.tasks[transfer].kind == TaskKind::Transfer);
        const Nanoseconds arrived = m_timeline.end[transfer];
        GpuWork made;
        made.names = {"gemm"};
        const auto add = [&](TaskId task, Nanoseconds start, Nanoseconds end, Nanoseconds launched) {
            GpuWork::Slice& slice = made.slices.emplace_back();
            slice.task = task;
            slice.device = m_program.tasks[task].device;
            slice.start = start;
            slice.end = end;
            slice.launched = launched;
        };
        add(before, 0, arrived + 5'000, 0);
        add(first, arrived + 5'000, arrived + 8'000, arrived + 3'000);
        const std::vector<GpuGaps> gaps = gpuGaps(m_program, made, m_timeline);
        QCOMPARE(gaps[1].lateData, m_timeline.end[before]);
        QCOMPARE(gaps[1].link, arrived - m_timeline.end[before]);
        QCOMPARE(gaps[1].host, 3'000);
        QCOMPARE(gaps[1].otherSlice, 2'000);
        QCOMPARE(gaps[1].other, 0);
        QCOMPARE(gaps[1].running, 3'000);
        QCOMPARE(gaps[0].running, arrived + 5'000);
        // On another GPU device 0 is in nobody's way.
        made.slices[1].gpu = 1;
        QCOMPARE(gpuGaps(m_program, made, m_timeline)[1].other, 2'000);
    }

    void whatAnH100RecordedUnfolds()
    {
        const TraceReader trace(PIPEWRIGHT_SOURCE_DIR "/resources/experiments/gpu/h100/1f1b-four-slices.db");
        const Design design = trace.design();
        const Program program = compile(design.schedule, design.costs, design.dataflow);
        const int step = trace.medianStep();
        const Timeline timeline = trace.timeline(program, step);
        const GpuWork work = trace.gpuWork(program, step);
        const auto blocks = blockKernels(program, work, timeline, KernelGroups::standard());

        // Nearly all time of kernels belongs to a block, in whose events it lies but for the error of two clocks.
        Nanoseconds all = 0, labelled = 0;
        for (const GpuWork::Slice& slice : work.slices) {
            if (slice.kind != ActivityKind::Kernel)
                continue;
            all += slice.end - slice.start;
            QVERIFY(slice.launched != GpuWork::unknown);
            if (slice.task == none)
                continue;
            labelled += slice.end - slice.start;
            QVERIFY(slice.start >= timeline.start[slice.task] - 100'000);
            QVERIFY(slice.end <= timeline.end[slice.task] + 100'000);
        }
        QVERIFY2(labelled >= all / 100 * 99, qPrintable(QString("%1 of %2 ns").arg(labelled).arg(all)));

        const KernelTotals totals = totalsOf(program, blocks, work, timeline);
        QCOMPARE(totals.blocks, 68); // 4 stages x 8 microbatches, forward and backward, and an update each
        QCOMPARE(totals.without, 0);
        for (const BlockKernels::Group& group : totals.groups)
            QVERIFY(KernelGroups::standard().names().at(group.group) != "other");
        for (const GpuGaps& gaps : gpuGaps(program, work, timeline)) {
            QVERIFY(gaps.recorded);
            QCOMPARE(gaps.running + gaps.lateData + gaps.link + gaps.host + gaps.otherSlice + gaps.other
                         + gaps.coolDown,
                     *std::max_element(timeline.end.begin(), timeline.end.end()));
            QVERIFY(gaps.host > gaps.running); // so small a model is bound by its launches
        }
        // Its design has the slices of that GPU as they were measured, and they are far from their ceilings.
        const std::vector<AchievedRate> rates = achievedRates(workedDesign(trace, design), program, timeline);
        QCOMPARE(beyondCeilings(rates), std::string());
        const AchievedRate& units = rates.front();
        QCOMPARE(nameOf(units, design.cluster), std::string("matrix units of GPU 0"));
        QVERIFY(units.ceiling > 9e12 && units.ceiling < 10e12);
        QVERIFY(units.share() > 0.03 && units.share() < 0.05);
    }

    void aDeviceWithoutKernelsHasNone()
    {
        const std::vector<GpuGaps> gaps = gpuGaps(m_program, {}, m_timeline);
        QVERIFY(!gaps[0].recorded && gaps[0].coolDown == 0);
    }
};

PIPEWRIGHT_TEST(TestBlockKernels, QCoreApplication)
#include "tst_blockkernels.moc"
