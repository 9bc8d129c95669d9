// SPDX-License-Identifier: GPL-3.0-or-later
// What `predict` says of where its times come from, and of how far such predictions have been from measured runs, by
// the real program.
#include "app/program.h"
#include "testmain.h"

#include <QTest>

using namespace pipewright::test;

class TestPredictedOrigins : public QObject {
    Q_OBJECT

private:
    Workplace m_work;

private Q_SLOTS:
    void ratesSayHowMuchOfTheTimeWasMeasured()
    {
        const QString words = "1f1b --devices 4 --microbatches 8 --model llama-3-70b --cluster b200-nodes "
                              "--sequence 4096";
        const QJsonArray stages = m_work.predicted(words)["costs"].toObject()["rates"].toArray();
        QCOMPARE(stages.size(), 4);
        const QJsonObject forward = stages[1].toObject()["forward"].toObject();
        QVERIFY(forward["measured_ns"].toDouble() > forward["interpolated_ns"].toDouble());
        QVERIFY(m_work.run("predict " + words).output.contains("rates: "));
        QVERIFY(!m_work.predicted(words + " --efficiency 0.5")["costs"].toObject().contains("rates"));
    }

    /// Of rates those runs that were compared with them, of one efficiency others, and of given times none.
    void howFarSuchPredictionsHaveBeenIsSaid()
    {
        const QString words = "1f1b --devices 4 --microbatches 8 --model llama-3-70b --cluster b200-nodes";
        const QJsonObject rated = m_work.predicted(words)["costs"].toObject();
        QCOMPARE(rated["error"]["of"].toString(), QString("Megatron on B200"));
        QCOMPARE(rated["rates_from"][0]["name"].toString(), QString("b200-sxm"));
        const QJsonObject formula = m_work.predicted(words + " --efficiency 0.5")["costs"].toObject();
        QVERIFY(formula["error"]["median"].toDouble() > rated["error"]["median"].toDouble());
        QVERIFY(m_work.predicted("1f1b --devices 4 --microbatches 8")["costs"].toObject()["error"].isNull());
        QVERIFY(m_work.run("predict 1f1b --devices 4 --microbatches 8").output.contains("is not known"));
    }

    /// Those of the first rank's length within the error of ratios, and no others.
    void familiesThatTheErrorDoesNotTellApartAreCalledAlike()
    {
        const QString words = "1f1b --devices 4 --microbatches 12 --families";
        const QJsonObject ranked = m_work.predicted(words);
        const double most = 1 + ranked["error_of_schedules"]["median"].toDouble();
        double first = 0;
        int alike = 0, others = 0;
        for (const QJsonValue entry : ranked["families"].toArray()) {
            if (!entry["makespan_ns"].isDouble())
                continue;
            const double length = entry["makespan_ns"].toDouble();
            if (first == 0) {
                first = length;
                continue;
            }
            QCOMPARE(entry["alike_with_first"].toBool(), length < most * first);
            (entry["alike_with_first"].toBool() ? alike : others) += 1;
        }
        QVERIFY(alike > 0 && others > 0);
        QVERIFY(m_work.run("predict " + words).output.contains("alike with the shortest: "));
    }
};

PIPEWRIGHT_TEST(TestPredictedOrigins, QCoreApplication)
#include "tst_predictedorigins.moc"
