// SPDX-License-Identifier: GPL-3.0-or-later
// Rates by operation and shape: what is measured, what lies between, what is far, and how far from measured shapes
// their neighbours' rates are.
#include "core/base/diagnostic.h"
#include "core/base/textfile.h"
#include "core/rates/ratesfile.h"
#include "testmain.h"
#include "testpaths.h"

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

OperationRates b200()
{
    const std::string path = std::string(PIPEWRIGHT_SOURCE_DIR) + "/resources/rates/b200-sxm.json";
    return parseRates(readTextFile(path), path);
}

/// "file:line: …" of every fault of a file with these tables.
std::string faultsOf(const std::string& tables)
{
    try {
        (void)parseRates("{\"title\": \"t\", \"origin\": \"o\", \"tables\": [\n" + tables + "]}", "rates.json");
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
        QTest::addColumn<RatedOperation>("operation");
        QTest::addColumn<double>("median");
        QTest::addColumn<double>("nineOfTen");
        QTest::newRow("products") << RatedOperation::Product << 0.06 << 0.31;
        QTest::newRow("grouped products") << RatedOperation::GroupedProduct << 0.14 << 0.38;
        QTest::newRow("attention forward") << RatedOperation::AttentionForward << 0.09 << 0.48;
        QTest::newRow("attention backward") << RatedOperation::AttentionBackward << 0.07 << 0.22;
    }
    void neighboursSayHowFastALeftOutShapeIs()
    {
        QFETCH(RatedOperation, operation);
        QFETCH(double, median);
        QFETCH(double, nineOfTen);
        std::size_t tables = 0;
        for (const RateTable& table : b200().tables) {
            if (table.operation != operation)
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
};

PIPEWRIGHT_TEST(OperationRatesTest, NoApplication)
#include "tst_operationrates.moc"
