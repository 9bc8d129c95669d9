// SPDX-License-Identifier: GPL-3.0-or-later
// zb-auto and zb-v against the zero-bubble paper: Table 5 (ZB-1p, ZB-2p), Table 8 (ZB-V) and the data behind
// Fig. 9, bubble rate against memory limit.
#include "core/families/family.h"
#include "core/predict/predict.h"
#include "core/schedule/validate.h"
#include "makers/designs.h"
#include "testmain.h"

#include <QTest>

#include <array>
#include <random>

using namespace pipewright;

namespace {

struct Predicted {
    Schedule schedule;
    Metrics metrics;
};

/// Times in microseconds of one device's worth of layers.
Predicted predictFamily(const char* family, FamilyParameters parameters)
{
    Design design = test::evenDesign(test::worthOf(parameters), makeSchedule(family, parameters));
    for (std::size_t s = 0; s < parameters.stageTimes.size(); ++s) {
        StageCosts& costs = design.costs.stages[s];
        costs.forward = parameters.stageTimes[s].forward;
        costs.inputGrad = parameters.stageTimes[s].inputGrad;
        costs.weightGrad = parameters.stageTimes[s].weightGrad;
    }
    return {design.schedule, predict(design).metrics};
}

FamilyParameters parameters(int p, int m, int f, int b, int w, int c, double limit)
{
    FamilyParameters q = test::sized(p, m);
    q.forward = f * 1000;
    q.inputGrad = b * 1000;
    q.weightGrad = w * 1000;
    q.transfer = c * 1000;
    q.memoryLimit = limit;
    return q;
}

QString digits(double rate)
{
    return QString::number(rate, 'f', 4);
}

/// In the unit of the parameters' stages.
std::int64_t keptAtMost(const Schedule& schedule, int device, const FamilyParameters& parameters)
{
    std::int64_t now = 0, most = 0;
    for (const Block& block : schedule.order[device]) {
        const StageSaved& stage = parameters.stageSaved[block.stage];
        now += block.op == Op::F   ? stage.forward
               : block.op == Op::I ? stage.inputGrad - stage.forward
                                   : -stage.inputGrad;
        most = std::max(most, now);
    }
    return most;
}

double peak(const Metrics& metrics)
{
    double most = 0;
    for (const DeviceMetrics& d : metrics.devices)
        most = std::max(most, d.peakActivations);
    return most;
}

} // namespace

class ZeroBubbleAutoTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void tableFive_data()
    {
        QTest::addColumn<QList<int>>("row");
        QTest::addColumn<QString>("once");
        QTest::addColumn<QString>("twice");
        QTest::newRow("1.5B m24") << QList<int>{8, 24, 18522, 18086, 9337, 601} << "0.1585"
                                  << "0.0433";
        QTest::newRow("1.5B m32") << QList<int>{8, 32, 18513, 18086, 9331, 626} << "0.1242"
                                  << "0.0039";
        QTest::newRow("1.5B m64") << QList<int>{8, 64, 18546, 18097, 9321, 762} << "0.0674"
                                  << "0.0026";
        QTest::newRow("6.2B m24") << QList<int>{8, 24, 29718, 29444, 19927, 527} << "0.1323"
                                  << "0.0029";
        QTest::newRow("6.2B m32") << QList<int>{8, 32, 29802, 29428, 19530, 577} << "0.1045"
                                  << "0.0022";
        QTest::newRow("6.2B m64") << QList<int>{8, 64, 29935, 29621, 19388, 535} << "0.0554"
                                  << "0.0010";
        QTest::newRow("14.6B m48") << QList<int>{16, 48, 11347, 11248, 8132, 377} << "0.1397"
                                   << "0.0066";
        QTest::newRow("14.6B m64") << QList<int>{16, 64, 11307, 11254, 8101, 379} << "0.1088"
                                   << "0.0054";
        QTest::newRow("14.6B m128") << QList<int>{16, 128, 11325, 11308, 8109, 378} << "0.0576"
                                    << "0.0028";
        QTest::newRow("28.3B m96") << QList<int>{32, 96, 10419, 10207, 7715, 408} << "0.1421"
                                   << "0.0038";
        QTest::newRow("28.3B m128") << QList<int>{32, 128, 10408, 10204, 7703, 408} << "0.1106"
                                    << "0.0029";
        QTest::newRow("28.3B m256") << QList<int>{32, 256, 10402, 10248, 7698, 460} << "0.0594"
                                    << "0.0018";
    }

    void tableFive()
    {
        QFETCH(QList<int>, row);
        QFETCH(QString, once);
        QFETCH(QString, twice);
        const auto made = [&](double limit) {
            return predictFamily("zb-auto", parameters(row[0], row[1], row[2], row[3], row[4], row[5], limit));
        };
        QCOMPARE(digits(made(1).metrics.rateSpan), once);
        QCOMPARE(peak(made(1).metrics), double(row[0]));
        QCOMPARE(digits(made(2).metrics.rateSpan), twice);
        QVERIFY(validate(made(2).schedule).empty());
    }

    void bubbleAgainstMemory_data()
    {
        QTest::addColumn<QString>("family");
        QTest::addColumn<QList<int>>("row");
        QTest::addColumn<QString>("rates"); // at 1.0, 1.125, … 3.0 times the memory of 1F1B
        // The times are per chunk of half a device, the transfer is one hop.
        const QList<int> m48{16, 48, 14407, 14380, 9676, 1610}, m64{16, 64, 14412, 14393, 9688, 1621},
            m128{16, 128, 14316, 14306, 9639, 1619}, p24{24, 72, 6763, 6969, 5251, 755},
            p32{32, 96, 9458, 9748, 7288, 879};
        QTest::newRow("zb-auto p16 m48")
            << "zb-auto" << m48
            << ".1536 .1272 .0998 .0773 .0632 .0493 .0350 .0209 .0077 .0077 .0077 .0077 .0077 .0077 .0077 .0077 .0077";
        QTest::newRow("zb-auto p16 m64")
            << "zb-auto" << m64
            << ".1198 .0986 .0768 .0591 .0483 .0375 .0266 .0154 .0052 .0052 .0052 .0052 .0052 .0052 .0052 .0000 .0000";
        QTest::newRow("zb-auto p16 m128")
            << "zb-auto" << m128
            << ".0637 .0518 .0399 .0305 .0248 .0192 .0135 .0078 .0026 .0026 .0026 .0026 .0026 .0026 .0026 .0000 .0000";
        QTest::newRow("zb-auto p24 m72")
            << "zb-auto" << p24
            << ".1439 .1161 .0911 .0787 .0659 .0528 .0393 .0254 .0111 .0049 .0049 .0049 .0049 .0049 .0049 .0007 .0000";
        QTest::newRow("zb-auto p32 m96")
            << "zb-auto" << p32
            << ".1429 .1127 .0907 .0783 .0654 .0523 .0387 .0248 .0104 .0037 .0037 .0037 .0037 .0037 .0037 .0037 .0000";
        QTest::newRow("zb-v p16 m48")
            << "zb-v" << m48
            << ".0697 .0497 .0306 .0203 .0065 .0065 .0035 .0035 .0035 .0035 .0035 .0035 .0035 .0035 .0035 .0035 .0035";
        QTest::newRow("zb-v p16 m64")
            << "zb-v" << m64
            << ".0533 .0379 .0233 .0154 .0049 .0049 .0027 .0027 .0027 .0027 .0027 .0027 .0027 .0027 .0027 .0027 .0027";
        QTest::newRow("zb-v p16 m128")
            << "zb-v" << m128
            << ".0274 .0193 .0118 .0067 .0025 .0025 .0014 .0014 .0014 .0014 .0014 .0014 .0014 .0014 .0014 .0014 .0014";
        QTest::newRow("zb-v p24 m72") << "zb-v" << p24 << ".0638 .0419 .0222 .0143 .0039 .0039 .0039";
        QTest::newRow("zb-v p32 m96") << "zb-v" << p32 << ".0593 .0383 .0177 .0116 .0032 .0032 .0032";
    }

    void bubbleAgainstMemory()
    {
        QFETCH(QString, family);
        QFETCH(QList<int>, row);
        QFETCH(QString, rates);
        double limit = 1;
        for (const QString& rate : rates.split(' ')) {
            const Predicted made =
                predictFamily(family.toUtf8().constData(),
                              parameters(row[0], row[1], 2 * row[2], 2 * row[3], 2 * row[4], row[5], limit));
            QCOMPARE(digits(made.metrics.rateSpan), "0" + rate);
            limit += .125;
        }
    }

    void defaultLimitIsOnce()
    {
        FamilyParameters q = parameters(16, 48, 28814, 28760, 19352, 1610, 1);
        q.memoryLimit.reset();
        QCOMPARE(digits(predictFamily("zb-v", q).metrics.rateSpan), QString("0.0697"));
        QCOMPARE(digits(predictFamily("zb-auto", q).metrics.rateSpan), QString("0.1536"));
    }

    void whatStaysUntilWeightGradDecidesHowManyFit()
    {
        FamilyParameters q = parameters(8, 32, 18513, 18086, 9331, 626, 2);
        q.saved = 100;
        q.savedForWeightGrad = 40;
        QCOMPARE(digits(predictFamily("zb-auto", q).metrics.rateSpan), QString("0.0039"));
        q.savedForWeightGrad = 100; // then the limit is the peak of live activations
        const Predicted strict = predictFamily("zb-auto", q);
        QCOMPARE(digits(strict.metrics.rateSpan), QString("0.0784"));
        QCOMPARE(peak(strict.metrics), 16.0);
    }

    void aModelWhoseInputGradientGivesNothingBackKeepsNoMoreMicrobatchesThanTheLimit()
    {
        // MiB of Llama-3 8B on 8 devices: the embedding's stage makes more than it frees, the head's frees some.
        FamilyParameters q = parameters(8, 32, 40'000, 41'000, 36'000, 200, 1.25);
        QVERIFY(peak(predictFamily("zb-auto", q).metrics) > 10); // by the papers' ratio
        q.stageSaved.assign(8, {4352, 4352});
        q.stageSaved.front() = {4352, 4416};
        q.stageSaved.back() = {8488, 6420};
        const Predicted made = predictFamily("zb-auto", q);
        for (int d = 0; d < 7; ++d)
            QCOMPARE(made.metrics.devices[d].peakActivations, 10.0);
        QVERIFY(keptAtMost(made.schedule, 7, q) <= 10 * 8488);
    }

    void familiesThatSearchKeepUnevenStagesWithinTheirLimits()
    {
        std::mt19937 random(20260301);
        const auto number = [&](int least, int most) { return std::uniform_int_distribution(least, most)(random); };
        int found = 0;
        for (int round = 0; round < 120; ++round) {
            const char* const family = std::array{"zb-auto", "zb-v", "v-auto"}[round % 3];
            const int p = number(1, 5), chunks = findFamily(family)->defaultChunks;
            FamilyParameters q = parameters(p, number(1, 14), 100, number(80, 140), number(50, 110), number(0, 20), 1);
            q.memoryLimit = number(8, 25) / 10.0;
            for (int s = 0; s < p * chunks; ++s)
                q.stageSaved.push_back({number(50, 200), number(20, 220)});
            std::vector<Bytes> limits;
            for (int d = 0; d < p; ++d) {
                Bytes one = 0;
                for (const int s : {d, 2 * p - 1 - d})
                    if (s < p * chunks && (chunks == 2 || s == d))
                        one += std::max(q.stageSaved[s].forward, q.stageSaved[s].inputGrad);
                limits.push_back(round % 2 == 0 ? static_cast<Bytes>(*q.memoryLimit * p * double(one) + 1e-6)
                                                : one + number(0, 2 * p * 200));
            }
            if (round % 2 == 1)
                q.memoryBudget = limits;
            try {
                const Predicted made = predictFamily(family, q);
                ++found;
                QVERIFY(validate(made.schedule).empty());
                // A V under a factor: in bytes, or else in the count of its chunks.
                const bool counted =
                    chunks == 2 && q.memoryBudget.empty() && peak(made.metrics) <= *q.memoryLimit * p + 1e-9;
                for (int d = 0; d < p; ++d)
                    QVERIFY2(counted || keptAtMost(made.schedule, d, q) <= limits[d],
                             qPrintable(QString::number(round)));
            } catch (const Error& error) {
                QCOMPARE(QString::fromStdString(error.diagnostics().front().where), QString("--memory-limit"));
            }
        }
        QVERIFY2(found > 80, qPrintable(QString::number(found)));
    }

    void aVWhoseChunksDifferIsStillPossibleAtOnce()
    {
        FamilyParameters q = parameters(2, 8, 100, 120, 90, 3, 1); // MiB of DeepSeek-V3 on 2 devices
        q.stageSaved = {{1920, 1862}, {2228, 2162}, {2089, 2027}, {2222, 2094}};
        const std::vector<StageSaved> headHeavy{{5, 5}, {5, 5}, {5, 5}, {5, 60}};
        for (const char* family : {"zb-v", "v-auto"})
            for (const std::vector<StageSaved>& saved : {std::vector(q.stageSaved), headHeavy}) {
                q.stageSaved = saved;
                const Predicted made = predictFamily(family, q);
                QVERIFY(validate(made.schedule).empty());
                QVERIFY(saved == headHeavy || peak(made.metrics) <= 2); // the head's bytes leave room for more
            }
    }

    void unevenStagesAreNoWorseThanTheHandmadeOrder()
    {
        FamilyParameters q = parameters(4, 16, 1000, 1000, 1000, 50, 1);
        q.saved = q.savedForWeightGrad = 1; // as strict as the handmade orders are judged
        for (int s = 0; s < 4; ++s)
            q.stageTimes.push_back({(900 + 100 * s) * 1000, (1100 - 50 * s) * 1000, 600'000});
        const Predicted automatic = predictFamily("zb-auto", q);
        QVERIFY(automatic.metrics.span <= predictFamily("zb-h1", q).metrics.span);
        QVERIFY(validate(automatic.schedule).empty());
        q.stageTimes.pop_back();
        QVERIFY_THROWS_EXCEPTION(Error, predictFamily("zb-auto", q));
    }

    void everySizeAndLimitGivesACompleteSchedule()
    {
        for (const char* family : {"zb-auto", "zb-v"})
            for (int p : {1, 2, 3, 5})
                for (int m : {1, 2, 3, 7, 12})
                    for (double limit : {1.0, 1.3, 2.0, 3.0}) {
                        const Predicted made = predictFamily(family, parameters(p, m, 100, 120, 70, 9, limit));
                        QCOMPARE(made.schedule.blocks(), std::int64_t{3} * made.schedule.stages() * m);
                        QVERIFY(validate(made.schedule).empty());
                    }
    }

    void evenOneMicrobatchOfMemoryMakesASchedule()
    {
        QCOMPARE(peak(predictFamily("zb-auto", parameters(4, 8, 100, 100, 100, 0, 0.25)).metrics), 1.0);
    }

    void tooLittleMemoryNamesTheOption()
    {
        for (const char* family : {"zb-auto", "zb-v", "v-auto"})
            try {
                predictFamily(family, parameters(8, 16, 100, 100, 100, 0, 0.1));
                QFAIL("no error");
            } catch (const Error& error) {
                QCOMPARE(error.diagnostics().front().where, std::string("--memory-limit"));
            }
    }
};

PIPEWRIGHT_TEST(ZeroBubbleAutoTest, QCoreApplication)
#include "tst_zbauto.moc"
