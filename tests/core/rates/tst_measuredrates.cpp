// SPDX-License-Identifier: GPL-3.0-or-later
// Rates from measured times, written and read again: what was measured is found as it was.
#include "core/rates/measuredrates.h"
#include "core/rates/ratesfile.h"
#include "testmain.h"

#include <QTest>

#include <cmath>

using namespace pipewright;

namespace {

const std::vector<MeasuredTime> times{
    {{RatedOperation::Product, "TN", "fp32", {}, {64, 128, 256}}, 1e-3},
    {{RatedOperation::Product, "TN", "fp32", {}, {64, 128, 512}}, 1.7e-3},
    {{RatedOperation::Product, "NT", "fp32+fp32", {}, {256, 64, 128}}, 2e-3},
    {{RatedOperation::AttentionForward, "causal", "fp32", {}, {8, 2, 16, 16, 64}}, 3e-4},
    {{RatedOperation::AttentionBackward, "stored", "fp32", {}, {8, 8, 16, 16, 64}}, 9e-4},
    {{RatedOperation::Memory, "elementwise", {}, {}, {4096}}, 5e-6},
};

} // namespace

class MeasuredRatesTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void whatWasMeasuredIsFoundAsItWas()
    {
        const OperationRates made = ratesOf(times, {"title", "origin", "a \"source\"", "2026", 1e10, 1e9});
        QCOMPARE(made.tables.size(), std::size_t{5}); // two shapes of one table
        OperationRates read = parseRates(ratesText(made), "made.rates.json");
        QVERIFY(read == made);
        for (const MeasuredTime& time : times) {
            const auto rate = read.find(time.shape);
            QVERIFY(rate && rate->origin == RateOrigin::Measured);
            QVERIFY(std::abs(rate->seconds(amountOf(time.shape)) / time.seconds - 1) < 1e-5);
        }
        // Between two that were measured, log-linear, as of any file.
        QVERIFY(read.find({RatedOperation::Product, "TN", "fp32", {}, {64, 128, 384}})->origin
                == RateOrigin::Interpolated);
    }

    void theFirstOfAShapeThatIsThereTwiceCounts()
    {
        const std::vector<MeasuredTime> twice{times[0], {times[0].shape, 5}};
        const OperationRates rates = ratesOf(twice, {"t", "o", "s", "w", 1e10, 1e9});
        QCOMPARE(rates.tables.front().shapes.size(), std::size_t{1});
        QVERIFY(std::abs(rates.find(times[0].shape)->seconds(amountOf(times[0].shape)) - 1e-3) < 1e-8);
    }

    /// Two products forward, five backward, or four where the scores are kept; a causal mask leaves half of them.
    void amountsAreThoseOfTheShape()
    {
        const RateDimensions attention{8, 2, 16, 12, 64};
        const double whole = 2.0 * 8 * 64 * 64 * (16 + 12);
        const auto amount = [&](RatedOperation operation, const char* layout) {
            return amountOf({operation, layout, "bf16", {}, attention});
        };
        QCOMPARE(amount(RatedOperation::AttentionForward, "causal"), whole / 2);
        QCOMPARE(amount(RatedOperation::AttentionForward, "whole"), whole);
        QCOMPARE(amount(RatedOperation::AttentionForward, "stored"), whole);
        QCOMPARE(amount(RatedOperation::AttentionBackward, "causal"), 2.5 * whole / 2);
        QCOMPARE(amount(RatedOperation::AttentionBackward, "stored"), 2 * whole);
        QCOMPARE(amountOf({RatedOperation::GroupedProduct, "TN", "bf16", {}, {3, 4, 5, 6}}), 2.0 * 3 * 4 * 5 * 6);
        QCOMPARE(amountOf({RatedOperation::Send, {}, {}, "wire", {2, 4096}}), 4096.0);
    }

    void comparedRunsAreReadWithTheirFaults()
    {
        const auto with = [](const char* checked) {
            return std::string(R"({"title": "t", "origin": "o", "checked": )") + checked + R"(, "tables": []})";
        };
        const OperationRates rates = parseRates(
            with(R"([{"runs": 3, "median": 0.05, "largest": 0.2, "of": "runs", "where": "a page"}])"), "rates.json");
        QVERIFY(rates.checkedOf(ProductType::Own) == (CheckedRuns{3, 0.05, 0.2, "runs", "a page"}));
        QVERIFY(!rates.checkedOf(ProductType::Fp8));
        QVERIFY(parseRates(ratesText(rates), "again") == rates);
        QVERIFY_THROWS_EXCEPTION(std::exception, parseRates(with(R"([{"runs": 0, "median": 0.05}])"), "rates.json"));
    }
};

PIPEWRIGHT_TEST(MeasuredRatesTest, NoApplication)
#include "tst_measuredrates.moc"
