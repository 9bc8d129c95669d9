// SPDX-License-Identifier: GPL-3.0-or-later
// Rates by operation and shape: what is measured, what lies between, what is far, and how far from measured shapes
// their neighbours' rates are.
#include "core/base/diagnostic.h"
#include "core/base/textfile.h"
#include "core/rates/ratesfile.h"
#include "testmain.h"
#include "testpaths.h"

#include <QDir>
#include <QFileInfo>
#include <QProcess>
#include <QStandardPaths>
#include <QTemporaryDir>
#include <QTest>

#include <algorithm>
#include <cmath>

using namespace pipewright;

namespace {

RateTable products(std::vector<MeasuredRate> shapes)
{
    RateTable table;
    table.operation = RatedOperation::Product;
    table.layout = "TN";
    table.types = "bf16";
    table.peak = 1000;
    table.used = {0, 1, 2};
    table.shapes = std::move(shapes);
    return table;
}

OperationRates ratesOfPreset(const std::string& name)
{
    const std::string path = std::string(PIPEWRIGHT_SOURCE_DIR) + "/resources/rates/" + name + ".json";
    return parseRates(readTextFile(path), path);
}

std::string fileOf(const std::string& tables)
{
    return "{\"title\": \"t\", \"origin\": \"o\", \"tables\": [\n" + tables + "]}";
}

/// "file:line: …" of every fault of a file with these tables.
std::string faultsOf(const std::string& tables)
{
    try {
        (void)parseRates(fileOf(tables), "rates.json");
    } catch (const Error& error) {
        return error.what();
    }
    return {};
}

std::string table(const std::string& fields, const std::string& shapes)
{
    return R"({"peak": 1e12, "source": "s", "when": "2026", )" + fields + ",\n\"shapes\": [\n" + shapes + "]}\n";
}

/// Errors of shapes whose rate is taken from the others, ascending.
std::vector<double> errorsOfLeftOut(const RateTable& table)
{
    std::vector<double> errors;
    for (std::size_t i = 0; i < table.shapes.size(); ++i) {
        RateTable others = table;
        others.shapes.erase(others.shapes.begin() + static_cast<std::ptrdiff_t>(i));
        const MeasuredRate& left = table.shapes[i];
        errors.push_back(std::abs(rateIn(others, left.dims).perSecond / (table.peak * left.share) - 1));
    }
    std::sort(errors.begin(), errors.end());
    return errors;
}

} // namespace

class OperationRatesTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void aMeasuredShapeHasItsRate()
    {
        OperationRates rates;
        rates.tables = {products({{{2, 8, 8}, 0.5, 1e-6}, {{4, 8, 8}, 0.25}})};
        const auto rate = rates.find({RatedOperation::Product, "TN", "bf16", {}, {2, 8, 8}});
        QVERIFY(rate && rate->origin == RateOrigin::Measured);
        QCOMPARE(rate->perSecond, 500.0);
        QCOMPARE(rate->seconds(1000), 2 + 1e-6);
        QVERIFY(!rates.find({RatedOperation::Product, "NT", "bf16", {}, {2, 8, 8}}));
        QVERIFY(!rates.find({RatedOperation::Product, "TN", "fp32", {}, {2, 8, 8}}));
    }

    void betweenShapesThatDifferInOneDimensionTheRateIsLogLinear()
    {
        const RateTable table = products({{{64, 64, 64}, 0.2}, {{64, 64, 256}, 0.8, 4e-6}, {{65, 60, 120}, 0.01}});
        const Rate rate = rateIn(table, {64, 64, 128});
        QVERIFY(rate.origin == RateOrigin::Interpolated);
        QVERIFY(std::abs(rate.perSecond - 400) < 1e-9); // the root of 0.2 · 0.8
        QVERIFY(std::abs(rate.latency - 2e-6) < 1e-15);
    }

    void otherwiseTheFourNearestCountByTheirDistance()
    {
        const RateTable table =
            products({{{64, 64, 32}, 0.1}, {{64, 128, 64}, 0.4}, {{128, 64, 64}, 0.4}, {{32, 32, 32}, 0.2}});
        // Distances of one, one, one and two dimensions by a factor of two; (64, 64, 64) has no two on one line.
        const double near = 1, far = 1.0 / 3;
        const double expected =
            std::exp((near * std::log(0.1) + 2 * near * std::log(0.4) + far * std::log(0.2)) / (3 * near + far));
        const Rate rate = rateIn(table, {64, 64, 64});
        QVERIFY2(std::abs(rate.perSecond / (1000 * expected) - 1) < 1e-12, qPrintable(QString::number(rate.perSecond)));
    }

    void farFromAllTheNearestRateCountsAndSaysSo()
    {
        const RateTable table = products({{{4096, 4096, 4096}, 0.5}, {{4096, 4096, 8192}, 0.25}});
        QVERIFY(rateIn(table, {1100, 4096, 4096}).origin == RateOrigin::Interpolated);
        const Rate far = rateIn(table, {128, 4096, 4096});
        QVERIFY(far.origin == RateOrigin::Nearest);
        QCOMPARE(far.perSecond, 500.0);
    }

    void aTableWithoutDimensionsHasOneRate()
    {
        RateTable table;
        table.peak = 100;
        table.shapes = {{{}, 0.5, 2e-6}};
        const Rate rate = rateIn(table, {12345});
        QCOMPARE(rate.perSecond, 50.0);
        QVERIFY(rate.origin == RateOrigin::Interpolated);
    }

    void aTableMayCountForSeveralLayoutsAndTypes()
    {
        const OperationRates rates = parseRates(
            fileOf(
                table(R"("operation": "product", "layout": ["TN", "NT"], "types": ["bf16", "bf16+fp32"], "dims": [])",
                      "[0.25]")),
            "rates.json");
        QCOMPARE(rates.tables.size(), std::size_t(4));
        for (const char* layout : {"TN", "NT"})
            for (const char* types : {"bf16", "bf16+fp32"})
                QCOMPARE(rates.find({RatedOperation::Product, layout, types, {}, {1, 2, 3}})->share, 0.25);
        QVERIFY(!rates.find({RatedOperation::Product, "NN", "bf16", {}, {1, 2, 3}}));
    }

    void faultsAreNamedWithTheirLines_data()
    {
        QTest::addColumn<QString>("tables");
        QTest::addColumn<QString>("fault");
        const auto row = [](const char* name, const std::string& tables, const char* fault) {
            QTest::newRow(name) << QString::fromStdString(tables) << QString(fault);
        };
        const std::string product = R"("operation": "product", "dims": ["rows", "inner", "columns"])";
        row("operation", table(R"("operation": "produkt", "dims": [])", "[0.5]"), "no operation is named \"produkt\"");
        row("dimension", table(R"("operation": "product", "dims": ["row"])", "[1, 0.5]"),
            "known: rows, inner, columns");
        row("share", table(product, "[1, 1, 1, 0.5],\n[2, 2, 2, 0]"), "rates.json:5: error: 0 is no share");
        row("size", table(product, "[1, 0, 1, 0.5]"), "rates.json:4: error: 0 is no size");
        row("seconds", table(product, "[1, 1, 1, 0.5, -1]"), "no seconds");
        row("length", table(product, "[1, 1, 0.5]"), "3 sizes");
        row("twice", table(product, "[1, 2, 3, 0.5],\n[1, 2, 3, 0.6]"), "a shape is there twice: 1 × 2 × 3");
        row("empty", table(product, ""), "a table without shapes");
        row("two tables", table(product, "[1, 2, 3, 0.5]") + "," + table(product, "[1, 2, 4, 0.5]"), "two tables");
        row("no layout", table(product + R"(, "layout": [])", "[1, 2, 3, 0.5]"), "an empty list");
        row("layout that is no text", table(product + R"(, "layout": ["TN", 5])", "[1, 2, 3, 0.5]"), "no text");
        row("layout twice", table(product + R"(, "layout": ["TN", "TN"])", "[1, 2, 3, 0.5]"), "two tables");
        row("unknown key", table(product + R"(, "shape": 1)", "[1, 2, 3, 0.5]"), "shape");
    }
    void faultsAreNamedWithTheirLines()
    {
        QFETCH(QString, tables);
        QFETCH(QString, fault);
        const QString said = QString::fromStdString(faultsOf(tables.toStdString()));
        QVERIFY2(said.contains(fault), qPrintable(said));
    }

    /// Median, and nine of ten, of the errors of shapes whose rate is taken from the others. Products scatter by a
    /// third whatever their neighbours reach: short ones were measured at the full clock, long ones at the power limit.
    void neighboursSayHowFastALeftOutShapeIs_data()
    {
        QTest::addColumn<QString>("file");
        QTest::addColumn<RatedOperation>("operation");
        QTest::addColumn<QString>("types");
        QTest::addColumn<double>("median");
        QTest::addColumn<double>("nineOfTen");
        const auto row = [](const char* file, RatedOperation operation, const char* types, double median, double most) {
            QTest::newRow(qPrintable(QString("%1 %2 %3").arg(file, nameOf(operation).data(), types)))
                << QString(file) << operation << QString(types) << median << most;
        };
        row("b200-sxm", RatedOperation::Product, "bf16", 0.06, 0.31);
        row("b200-sxm", RatedOperation::Product, "fp8", 0.08, 0.18);
        row("b200-sxm", RatedOperation::GroupedProduct, "bf16", 0.14, 0.38);
        row("b200-sxm", RatedOperation::GroupedProduct, "fp8", 0.06, 0.13);
        row("b200-sxm", RatedOperation::AttentionForward, "bf16", 0.09, 0.48);
        row("b200-sxm", RatedOperation::AttentionBackward, "bf16", 0.07, 0.22);
        row("hopper-sxm", RatedOperation::Product, "bf16", 0.05, 0.12);
        row("hopper-sxm", RatedOperation::Product, "fp8", 0.32, 0.65);
        row("hopper-sxm", RatedOperation::GroupedProduct, "bf16", 0.05, 0.10);
        row("hopper-sxm", RatedOperation::GroupedProduct, "fp8", 0.09, 0.15);
        row("hopper-sxm", RatedOperation::AttentionForward, "bf16", 0.03, 0.29);
        row("hopper-sxm", RatedOperation::AttentionBackward, "bf16", 0.05, 0.29);
    }
    void neighboursSayHowFastALeftOutShapeIs()
    {
        QFETCH(QString, file);
        QFETCH(RatedOperation, operation);
        QFETCH(QString, types);
        QFETCH(double, median);
        QFETCH(double, nineOfTen);
        std::size_t tables = 0;
        for (const RateTable& table : ratesOfPreset(file.toStdString()).tables) {
            if (table.operation != operation || !table.types.starts_with(types.toStdString()))
                continue;
            ++tables;
            const std::vector<double> errors = errorsOfLeftOut(table);
            const double middle = errors[errors.size() / 2], most = errors[errors.size() * 9 / 10];
            QVERIFY2(
                middle < median && most < nineOfTen,
                qPrintable(
                    QString("%1 %2: %3, %4").arg(table.layout.c_str(), table.types.c_str()).arg(middle).arg(most)));
        }
        QVERIFY(tables > 0);
    }

    void theScriptGivesEveryPassTheSizesOfItsOwnProduct()
    {
        const QString python = QStandardPaths::findExecutable("python3");
        if (python.isEmpty())
            QSKIP("there is no python3");
        QTemporaryDir folder;
        const std::string from = folder.filePath("table.json").toStdString();
        writeFileAtomically(from,
                            R"({"accelerator": {"op": {
"matmul": {"tflops": 2, "accurate_efficient_factor": {
  "b=1, m=1, k=2, n=3, layout=TN, accumulate=False, out_dtype=bf16": 0.5,
  "b=1, m=3, k=1, n=2, layout=NT, accumulate=True, out_dtype=fp32": 0.25}},
"group_matmul": {"tflops": 2, "accurate_efficient_factor": {
  "ng=7, M=4, N=5, K=6, main_grad_dtype=fp32, stage=fwd": 0.5,
  "ng=7, M=4, N=5, K=6, main_grad_dtype=fp32, stage=bwd_grad_act": 0.4,
  "ng=7, M=4, N=5, K=6, main_grad_dtype=fp32, stage=bwd_grad_w": 0.3}},
"sdp_fwd": {"tflops": 2, "accurate_efficient_factor": {
  "batch=1, seq_len=64, head_num=8, kv_head_num=2, qk_head_dim=16, v_head_dim=12, qkv_contiguous=True": 0.8}},
"sdp_bwd": {"tflops": 2, "accurate_efficient_factor": {}}},
"bandwidth": {"default": {"gbps": 8, "efficient_factor": 0.5, "latency_us": 2},
  "permute_fwd": {"gbps": 8, "efficient_factor": 0.4, "latency_us": 2},
  "ce_fusion": {"gbps": 8, "efficient_factor": 0.3, "latency_us": 2}}},
"networks": {"high_intra_node": {"bandwidth": {"gbps": 900}, "op": {
  "all_reduce": {"scale": 2, "efficient_factor": 0.7, "latency_us": 5, "fixed_latency_us": 20,
    "fixed_latency_us_by_comm_num": {}},
  "all_gather": {"scale": 1, "efficient_factor": 0.7, "latency_us": 5, "fixed_latency_us": 20,
    "fixed_latency_us_by_comm_num": {}},
  "reduce_scatter": {"scale": 1, "efficient_factor": 0.7, "latency_us": 5, "fixed_latency_us": 20,
    "fixed_latency_us_by_comm_num": {}},
  "all2all": {"scale": 1, "efficient_factor": 0.6, "latency_us": 5, "fixed_latency_us": 0,
    "fixed_latency_us_by_comm_num": {"2": 50}},
  "p2p": {"efficient_factor": 1.4, "latency_us": 16}}}}})",
                            true);
        QProcess script;
        script.start(
            python, {QString(PIPEWRIGHT_SOURCE_DIR) + "/resources/rates/fromsimumax.py", QString::fromStdString(from)});
        QVERIFY(script.waitForFinished());
        QCOMPARE(script.exitCode(), 0);
        const OperationRates rates = parseRates(script.readAllStandardOutput().toStdString(), "made");
        const auto rate = [&](const RatedShape& shape) {
            const auto found = rates.find(shape);
            return found && found->origin == RateOrigin::Measured ? found->perSecond / 2e12 : 0;
        };
        QCOMPARE(rate({RatedOperation::Product, "TN", "bf16", {}, {1, 2, 3}}), 0.5);
        QCOMPARE(rate({RatedOperation::Product, "NT", "bf16+fp32", {}, {3, 1, 2}}), 0.25);
        QCOMPARE(rate({RatedOperation::GroupedProduct, "TN", "bf16", {}, {7, 4, 6, 5}}), 0.5);
        QCOMPARE(rate({RatedOperation::GroupedProduct, "NN", "bf16", {}, {7, 4, 5, 6}}), 0.4);
        QCOMPARE(rate({RatedOperation::GroupedProduct, "NT", "bf16+fp32", {}, {7, 5, 4, 6}}), 0.3);
        QCOMPARE(rate({RatedOperation::AttentionForward, "causal", "bf16", {}, {8, 2, 16, 12, 64}}), 0.4);
        QCOMPARE(rates.find({RatedOperation::Memory, "loss", {}, {}, {}})->perSecond, 2.4e9);
        QCOMPARE(rates.find({RatedOperation::AllReduce, {}, {}, "NVLink 5", {4}})->latency, 50e-6);
        QCOMPARE(rates.find({RatedOperation::AllToAll, {}, {}, "NVLink 5", {2}})->latency, 55e-6);
        QCOMPARE(rates.find({RatedOperation::Send, {}, {}, "NVLink 5", {2}})->perSecond, 630e9);
    }

    /// Of a program that holds the tables as text, of results in folders, and of a page with tables.
    void theScriptForHopperCountsAsItsPageSays()
    {
        const QString python = QStandardPaths::findExecutable("python3");
        if (python.isEmpty())
            QSKIP("there is no python3");
        QTemporaryDir folder;
        const auto write = [&](const char* name, const std::string& text) {
            const QString path = folder.filePath(name);
            QDir().mkpath(QFileInfo(path).path());
            writeFileAtomically(path.toStdString(), text, true);
            return path;
        };
        const std::string nul(1, '\0');
        const auto product = [](int count, const char* value) {
            return "entries { b: " + std::to_string(count)
                   + " m: 4 n: 8 k: 16\n flops { key: \"bf16xbf16->bf16\" value: " + value + " } }\n";
        };
        const QString program =
            write("plugin.so",
                  nul + "entries {\n key: \"sm_100\" " + product(1, "5") + "}\nentries {\n key: \"sm_90\" "
                      + product(1, "494500000000000") + product(4, "247250000000000")
                      + "}\nentries {\n key: \"gfx942\" " + product(1, "7") + "}" + nul + "other" + nul
                      + "entries {\n key: \"sm_90\"\n instruction {\n opcode: \"reduce-scatter\" dimensions: 524288 "
                        "num_devices_per_group: 4 } network_throughput_bytes_per_sec: 150000000000\n"
                      + nul);
        write("cudnn/benchmark/sdpa_benchmark_training/results/h200/a.csv",
              "data_type,attn_mask,batch_size,q_seqlen,num_q_heads,head_dim_qk,head_dim_vo,fwd_time_ms,bwd_time_ms,"
              "sliding_window_size,success\n"
              "bfloat16,top_left,1,2048,64,128,128,0.2,0.5,,True\nbfloat16,top_left,2,4096,64,64,64,0.4,1,1024,True\n"
              "bfloat16,no_mask,1,2048,64,128,128,inf,inf,,False\n");
        write("cudnn/benchmark/norms/results/h200/a.csv",
              "backend,norm_type,N,C,fwd_time_ms,bwd_time_ms,success\ncudnn,rms_norm,1000,1200,0.001,0.003,True\n");
        const QString page = write("page.md", "| 4096 | 2112 | 7168 | 1009 TFLOPS | 503 GB/s | 1.1x |\n"
                                              "| 4 | 8192 | 4096 | 7168 | 1346 TFLOPS | 434 GB/s | 1.3x |\n");
        QProcess script;
        script.start(python, {QString(PIPEWRIGHT_SOURCE_DIR) + "/resources/rates/forhopper.py", program,
                              folder.filePath("cudnn"), page});
        QVERIFY(script.waitForFinished());
        QVERIFY2(script.exitCode() == 0, script.readAllStandardError().constData());
        const OperationRates rates = parseRates(script.readAllStandardOutput().toStdString(), "made");
        const auto share = [&](const RatedShape& shape) {
            const auto found = rates.find(shape);
            return found && found->origin == RateOrigin::Measured ? found->share : 0;
        };
        QCOMPARE(share({RatedOperation::Product, "NT", "bf16+fp32", {}, {4, 16, 8}}), 0.5);
        QCOMPARE(share({RatedOperation::GroupedProduct, "TN", "bf16", {}, {32, 4, 16, 8}}), 0.25);
        QCOMPARE(share({RatedOperation::Product, "TN", "fp8", {}, {4096, 7168, 2112}}), 0.5099);
        QCOMPARE(share({RatedOperation::GroupedProduct, "NN", "fp8", {}, {4, 8192, 7168, 4096}}), 0.6801);
        const double half = 2. * 64 * 2048 * 2048 / 2 * 256; // a causal mask's, and twice and a half of it
        const auto about = [](double found, double expected) { return std::abs(found / expected - 1) < 1e-3; };
        QVERIFY(about(share({RatedOperation::AttentionForward, "causal", "bf16", {}, {3, 3, 128, 128, 2048}}),
                      half / 0.2e-3 / 989e12));
        QVERIFY(about(share({RatedOperation::AttentionBackward, "causal", "bf16", {}, {3, 3, 128, 128, 2048}}),
                      2.5 * half / 0.5e-3 / 989e12));
        const double windowed = 2. * 2 * 64 * 4096 * (1024 - 1024. * 1024 / 8192) * 128;
        QVERIFY(about(share({RatedOperation::AttentionForward, "causal", "bf16", {}, {3, 3, 64, 64, 4096}}),
                      windowed / 0.4e-3 / 989e12));
        QVERIFY(!rates.find({RatedOperation::AttentionForward, "whole", "bf16", {}, {3, 3, 128, 128, 2048}}));
        QCOMPARE(share({RatedOperation::Memory, "loss", {}, {}, {4.8e6}}), 1.0);
        QCOMPARE(share({RatedOperation::Memory, "elementwise", {}, {}, {7.2e6}}), 0.5);
        QCOMPARE(share({RatedOperation::ReduceScatter, {}, {}, "NVLink 4", {4, 8388608}}), 0.25);
    }
};

PIPEWRIGHT_TEST(OperationRatesTest, NoApplication)
#include "tst_operationrates.moc"
