// SPDX-License-Identifier: GPL-3.0-or-later
// Between fp32 and bf16: which of the two neighbours a number becomes, and that what bf16 holds stays as it is.
#include "kernels/calls.h"
#include "numbers.h"
#include "testmain.h"

#include <QTest>

#include <bit>
#include <cmath>
#include <limits>

using namespace pipewright;
using namespace pipewright::kernels;

namespace {

std::uint16_t narrowed(float value)
{
    std::uint16_t result = 0;
    run(Narrow{{&value, 1}, {&result, 1}});
    return result;
}

} // namespace

class TestBfloat16 : public QObject {
    Q_OBJECT

private slots:
    void everyPatternSurvives()
    {
        std::vector<std::uint16_t> patterns(65536), again(65536);
        for (std::size_t i = 0; i < patterns.size(); ++i)
            patterns[i] = static_cast<std::uint16_t>(i);
        std::vector<float> wide(patterns.size());
        run(Widen{patterns, wide});
        run(Narrow{wide, again});
        for (std::size_t i = 0; i < patterns.size(); ++i) {
            if (std::isnan(wide[i]))
                QVERIFY(std::isnan(std::bit_cast<float>(std::uint32_t{again[i]} << 16)));
            else
                QCOMPARE(again[i], patterns[i]);
        }
    }

    void roundingIsToTheNearestAndThenToEven()
    {
        QCOMPARE(narrowed(1.0f), std::uint16_t{0x3f80});
        QCOMPARE(narrowed(1.0f + 0x1p-8f), std::uint16_t{0x3f80});                    // half way, down to even
        QCOMPARE(narrowed(1.0f + 3 * 0x1p-8f), std::uint16_t{0x3f82});                // half way, up to even
        QCOMPARE(narrowed(1.0f + 0x1p-8f + 0x1p-20f), std::uint16_t{0x3f81});         // more than half
        QCOMPARE(narrowed(-1.0f - 0x1p-8f - 0x1p-20f), std::uint16_t{0xbf81});        // away from zero alike
        QCOMPARE(narrowed(std::numeric_limits<float>::max()), std::uint16_t{0x7f80}); // beyond the largest: infinity
        QCOMPARE(narrowed(std::bit_cast<float>(0x7f800001u)), std::uint16_t{0x7fc0}); // still no number
    }

    void roundingInPlaceIsNarrowingAndWidening()
    {
        std::vector<float> values = test::single(test::someValues(1000, 3)), rounded = values, wide(values.size());
        std::vector<std::uint16_t> narrow(values.size());
        run(RoundToBf16{rounded});
        run(Narrow{values, narrow});
        run(Widen{narrow, wide});
        QCOMPARE(rounded, wide);
        for (std::size_t i = 0; i < values.size(); ++i)
            QVERIFY(std::abs(rounded[i] - values[i]) <= std::abs(values[i]) * 0x1p-8f);
        std::vector<float> again = values;
        std::vector<std::uint16_t> both(values.size());
        run(RoundToBf16{again, both});
        QCOMPARE(again, rounded);
        QCOMPARE(both, narrow);
        run(Widen{narrow, wide, Store::Add});
        for (std::size_t i = 0; i < values.size(); ++i)
            QCOMPARE(wide[i], 2 * rounded[i]);
    }
};

PIPEWRIGHT_TEST(TestBfloat16, NoApplication)
#include "tst_bfloat16.moc"
