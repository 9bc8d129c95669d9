// SPDX-License-Identifier: GPL-3.0-or-later
// The operations of today's decoders: fp64 references against finite differences and published numbers, host kernels
// against the references, at sizes that leave odd tails.
#include "kernels/calls.h"
#include "kernels/reference/decoder.h"
#include "numbers.h"
#include "testmain.h"

#include <QTest>

using namespace pipewright;
using kernels::ActivationKind;
using kernels::GroupedAttentionShape;
using kernels::Store;
using test::distance;
using test::dot;
using test::finiteDifferences;
using test::single;
using test::slopeTolerance;
using test::someValues;
using test::tolerance;
using test::Values;

namespace {

constexpr ActivationKind kinds[] = {ActivationKind::GeluTanh, ActivationKind::Gelu, ActivationKind::Silu,
                                    ActivationKind::Tanh};

} // namespace

class TestDecoderKernels : public QObject {
    Q_OBJECT
private slots:
    void rmsNormIsWhatItsReferenceSaysAndThatIsRight_data()
    {
        QTest::addColumn<int>("columns");
        for (const int columns : {1, 5, 16, 37, 128})
            QTest::addRow("%d columns", columns) << columns;
    }
    void rmsNormIsWhatItsReferenceSaysAndThatIsRight()
    {
        QFETCH(int, columns);
        const int rows = 7;
        const double epsilon = 1e-2f; // large enough to be seen
        const Values x = someValues(rows * columns, 1), gamma = someValues(columns, 2),
                     dy = someValues(rows * columns, 3);
        const auto loss = [&](const Values& x, const Values& gamma) {
            return dot(reference::rmsNormForward(rows, columns, epsilon, x, gamma), dy);
        };
        const Values dx = reference::rmsNormInputGrad(rows, columns, epsilon, x, gamma, dy);
        const Values dGamma = reference::rmsNormWeightGrad(rows, columns, epsilon, x, dy);
        QVERIFY(distance(dx, finiteDifferences(x, [&](auto& v) { return loss(v, gamma); })) < 10 * slopeTolerance);
        QVERIFY(distance(dGamma, finiteDifferences(gamma, [&](auto& v) { return loss(x, v); })) < slopeTolerance);

        std::vector<float> y(x.size(), NAN), added(x.size(), 0.25f), replaced = single(dy), gammaGrad(columns, 0.5f);
        kernels::run(kernels::RmsNormForward{rows, columns, float(epsilon), single(x), single(gamma), y});
        kernels::run(kernels::RmsNormWeightGrad{rows, columns, float(epsilon), single(x), single(dy), gammaGrad});
        kernels::run(kernels::RmsNormInputGrad{rows, columns, float(epsilon), single(x), single(gamma), single(dy),
                                               added, Store::Add});
        kernels::run(kernels::RmsNormInputGrad{rows, columns, float(epsilon), single(x), single(gamma), replaced,
                                               replaced, Store::Replace}); // in place
        std::vector<float> onTop(x.size(), 0.25f);
        kernels::run(
            kernels::RmsNormForward{rows, columns, float(epsilon), single(x), single(gamma), onTop, Store::Add});
        for (std::size_t i = 0; i < y.size(); ++i)
            QVERIFY(std::abs(onTop[i] - 0.25f - y[i]) <= 1e-6f * (1 + std::abs(y[i])));
        Values expectedSum = dx, expectedGamma = dGamma;
        for (double& value : expectedSum)
            value += 0.25;
        for (double& value : expectedGamma)
            value += 0.5;
        QVERIFY(distance(y, reference::rmsNormForward(rows, columns, epsilon, x, gamma)) < tolerance);
        QVERIFY(distance(added, expectedSum) < tolerance);
        QVERIFY(distance(replaced, dx) < 10 * tolerance);
        QVERIFY(distance(gammaGrad, expectedGamma) < tolerance);
    }

    void rotaryFrequenciesAreThePublishedOnes()
    {
        using kernels::RotaryScaling;
        const kernels::RotaryFrequencies llama{500'000, RotaryScaling::Llama3, 8, 1, 4, 8192};
        const kernels::RotaryFrequencies plain{500'000, RotaryScaling::None, 1, 1, 4, 0};
        // Short waves stay, long ones are eight times as long, between 2,048 and 8,192 tokens both have a share.
        QCOMPARE(kernels::rotaryFrequency(llama, 0, 128), 1.0);
        QCOMPARE(kernels::rotaryFrequency(llama, 10, 128), kernels::rotaryFrequency(plain, 10, 128));
        QCOMPARE(kernels::rotaryFrequency(llama, 63, 128), kernels::rotaryFrequency(plain, 63, 128) / 8);
        const double wave = kernels::rotaryFrequency(plain, 30, 128);
        const double turns = 8192 * wave / (2 * std::numbers::pi), kept = (turns - 1) / 3;
        QVERIFY(kept > 0 && kept < 1);
        QCOMPARE(kernels::rotaryFrequency(llama, 30, 128), wave * (kept + (1 - kept) / 8));
        // DeepSeek-V3: pairs 10 to 23 of 32 are blended (beta_fast 32, beta_slow 1, 4,096 tokens, base 10,000).
        const kernels::RotaryFrequencies yarn{10'000, RotaryScaling::Yarn, 40, 1, 32, 4096};
        const kernels::RotaryFrequencies base{10'000, RotaryScaling::None, 1, 1, 32, 4096};
        QCOMPARE(kernels::rotaryFrequency(yarn, 10, 64), kernels::rotaryFrequency(base, 10, 64));
        QCOMPARE(kernels::rotaryFrequency(yarn, 23, 64), kernels::rotaryFrequency(base, 23, 64) / 40);
        const double eleventh = kernels::rotaryFrequency(base, 11, 64);
        QVERIFY(kernels::rotaryFrequency(yarn, 11, 64) < eleventh);
        QVERIFY(kernels::rotaryFrequency(yarn, 11, 64) > eleventh / 40);
    }

    void turningIsWhatItsReferenceSaysAndTurnsBack_data()
    {
        QTest::addColumn<bool>("neighbours");
        QTest::addColumn<int>("first");
        QTest::newRow("halves") << false << 0;
        QTest::newRow("halves of a later piece") << false << 1000;
        QTest::newRow("neighbours") << true << 3;
    }
    void turningIsWhatItsReferenceSaysAndTurnsBack()
    {
        QFETCH(bool, neighbours);
        QFETCH(int, first);
        const int length = 5, heads = 3, headSize = 11, offset = 3, size = 6;
        const Values x = someValues(2 * length * heads * headSize, 1);
        std::vector<float> turned = single(x);
        kernels::Rotate call{{10'000, kernels::RotaryScaling::None, 1, 1, 4, 0},
                             length,
                             first,
                             heads,
                             headSize,
                             offset,
                             size,
                             neighbours,
                             false,
                             turned};
        const Values expected = reference::rotate(call, x);
        kernels::run(call);
        QVERIFY(distance(turned, expected) < tolerance);
        QVERIFY(turned != single(x));
        call.backwards = true;
        kernels::run(call);
        QVERIFY(distance(turned, x) < tolerance);
    }

    void productsOfTurnedValuesDependOnTheirDistance()
    {
        const Values q = someValues(8, 1), k = someValues(8, 2);
        const auto productAt = [&](int query, int key) {
            std::vector<float> none;
            const auto turned = [&](const Values& x, int position) {
                return reference::rotate(
                    {{10'000, kernels::RotaryScaling::None, 1, 1, 4, 0}, 1, position, 1, 8, 0, 8, false, false, none},
                    x);
            };
            return dot(turned(q, query), turned(k, key));
        };
        QVERIFY(std::abs(productAt(7, 3) - productAt(104, 100)) < 1e-10);
        QVERIFY(std::abs(productAt(7, 3) - productAt(8, 3)) > 1e-3);
    }

    void clampedMlpsAreWhatTheirReferenceSaysAndThatIsRight()
    {
        // Beyond both limits too, and not so near to them that a step of the differences crosses one.
        Values gate = someValues(300, 1, 10), factor = someValues(300, 2, 10);
        const Values dy = someValues(300, 3);
        for (Values* values : {&gate, &factor})
            for (double& value : *values)
                if (std::abs(std::abs(value) - 7) < 0.01)
                    value = 1;
        const auto kind = ActivationKind::ClampedSilu;
        std::vector<float> y(300, NAN), dGate(300, NAN), dFactor(300, NAN);
        kernels::run(kernels::GatedForward{kind, single(gate), single(factor), y});
        kernels::run(kernels::GatedInputGrad{kind, single(gate), single(factor), single(dy), dGate, dFactor});
        QVERIFY(distance(y, reference::gatedForward(kind, gate, factor)) < 2 * tolerance);
        const auto loss = [&](const Values& g, const Values& u) {
            return dot(reference::gatedForward(kind, g, u), dy);
        };
        QVERIFY(distance(dGate, finiteDifferences(gate, [&](auto& x) { return loss(x, factor); })) < 10 * tolerance);
        QVERIFY(distance(dFactor, finiteDifferences(factor, [&](auto& x) { return loss(gate, x); })) < 10 * tolerance);
    }

    void activationsAreWhatTheirReferenceSaysAndThatIsRight()
    {
        for (const ActivationKind kind : kinds)
            for (const std::size_t count : {9u, 15u, 64u, 1003u}) {
                const Values x = someValues(count, 1, 8), dy = someValues(count, 2), factor = someValues(count, 3);
                const Values value = reference::activationForward(kind, x);
                const Values slope = reference::activationInputGrad(kind, x, dy);
                QVERIFY(distance(slope, finiteDifferences(
                                            x, [&](auto& v) { return dot(reference::activationForward(kind, v), dy); }))
                        < 10 * slopeTolerance);
                std::vector<float> y(count, NAN), dx = single(dy);
                kernels::run(kernels::ActivationForward{kind, single(x), y});
                kernels::run(kernels::ActivationInputGrad{kind, single(x), dx, dx}); // in place
                QVERIFY(distance(y, value) < tolerance);
                QVERIFY(distance(dx, slope) < tolerance);

                Values gated = value, gateGrad = slope, factorGrad = value;
                for (std::size_t i = 0; i < count; ++i) {
                    gated[i] *= factor[i];
                    gateGrad[i] *= factor[i];
                    factorGrad[i] *= dy[i];
                }
                std::vector<float> both(count, NAN), dGate = single(dy), dFactor(count, NAN);
                kernels::run(kernels::GatedForward{kind, single(x), single(factor), both});
                kernels::run(kernels::GatedInputGrad{kind, single(x), single(factor), dGate, dGate, dFactor});
                QVERIFY(distance(both, gated) < tolerance);
                QVERIFY(distance(dGate, gateGrad) < tolerance);
                QVERIFY(distance(dFactor, factorGrad) < tolerance);
            }
    }

    void cappedLogitsAreWhatTheirReferenceSaysAndThatIsRight()
    {
        for (const std::size_t count : {1u, 15u, 1003u}) {
            const float cap = 3;
            const Values x = someValues(count, 1, 8), dy = someValues(count, 2), capped = reference::softCap(cap, x),
                         slope = reference::softCapGrad(cap, capped, dy);
            QVERIFY(distance(slope, finiteDifferences(x, [&](auto& v) { return dot(reference::softCap(cap, v), dy); }))
                    < 10 * slopeTolerance);
            std::vector<float> y = single(x), dx = single(dy);
            kernels::run(kernels::SoftCap{cap, y});
            kernels::run(kernels::SoftCapGrad{cap, y, dx});
            QVERIFY(distance(y, capped) < tolerance);
            QVERIFY(distance(dx, slope) < 10 * tolerance); // next to the cap the slope is a small difference
        }
    }

    void bytesAreNumbersBetweenMinusOneAndOne()
    {
        std::vector<std::int32_t> bytes(256);
        for (std::size_t i = 0; i < bytes.size(); ++i)
            bytes[i] = std::int32_t(i);
        const Values expected = reference::fromBytes(bytes);
        QCOMPARE(expected.front(), -1.0);
        QCOMPARE(expected.back(), 1.0);
        std::vector<float> values(bytes.size(), NAN);
        kernels::run(kernels::FromBytes{bytes, values});
        QVERIFY(distance(values, expected) < tolerance);
    }

    void aProductMayHaveGeluBehindIt()
    {
        const kernels::LinearShape shape{5, 6, 7};
        const Values x = someValues(30, 1), w = someValues(42, 2), b = someValues(7, 3), dy = someValues(35, 4),
                     before = someValues(30, 5), y = reference::linearForward(shape, x, w, b);
        std::vector<float> output(35, NAN), activated(35, NAN), dx(30, NAN);
        kernels::run(kernels::LinearForward{shape, single(x), single(w), single(b), output, Store::Replace, activated});
        QVERIFY(distance(output, y) < tolerance);
        QVERIFY(distance(activated, reference::geluForward(y)) < tolerance);
        kernels::run(kernels::LinearInputGrad{shape, single(dy), single(w), dx, Store::Replace, single(before)});
        QVERIFY(distance(dx, reference::geluInputGrad(before, reference::linearInputGrad(shape, dy, w))) < tolerance);
    }

    void anInputGradientIsAddedWhenAsked()
    {
        const kernels::LinearShape shape{5, 6, 7};
        const Values dy = someValues(35, 1), w = someValues(42, 2), before = someValues(30, 3);
        Values expected = reference::linearInputGrad(shape, dy, w);
        for (std::size_t i = 0; i < expected.size(); ++i)
            expected[i] += before[i];
        std::vector<float> dx = single(before);
        kernels::run(kernels::LinearInputGrad{shape, single(dy), single(w), dx, Store::Add});
        QVERIFY(distance(dx, expected) < tolerance);
    }

    void anEmbeddingWithoutPositionsIsItsTable()
    {
        const int hidden = 5, vocabulary = 7;
        const auto tokens = test::someTokens(9, vocabulary, 1);
        const Values table = someValues(vocabulary * hidden, 2), none(3 * hidden), dy = someValues(9 * hidden, 3);
        std::vector<float> y(9 * hidden, NAN), grad(table.size());
        kernels::run(kernels::EmbeddingForward{3, hidden, tokens, single(table), {}, y});
        kernels::run(kernels::EmbeddingWeightGrad{3, hidden, tokens, single(dy), grad, {}});
        QVERIFY(distance(y, reference::embeddingForward(3, hidden, tokens, table, none)) < tolerance);
        QVERIFY(distance(grad, reference::embeddingWeightGrad(3, hidden, vocabulary, tokens, dy).weight) < tolerance);
    }
};

PIPEWRIGHT_TEST(TestDecoderKernels, NoApplication)
#include "tst_decoderkernels.moc"
