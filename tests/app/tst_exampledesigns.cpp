// SPDX-License-Identifier: GPL-3.0-or-later
// The designs in resources/examples, run and compared as a person does.
#include "app/program.h"
#include "testmain.h"

#include <QTest>

#include <cmath>

using namespace pipewright::test;

class ExampleDesignsTest : public QObject {
    Q_OBJECT

private:
    Workplace m_work;

private Q_SLOTS:
    /// DeepSeek has published the parts of a forward and a backward chunk, and that the two took 129.012 ms together.
    void recordedChunksOfDeepSeekLieUnderTheirPrediction()
    {
        const QString design = QStringLiteral(PIPEWRIGHT_SOURCE_DIR "/resources/examples/overlapped-chunks.json");
        QCOMPARE(m_work.run("export " + design + " --to blocks-csv -o blocks.csv").code, 0);
        int pairs = 0;
        for (const QString& line : QString::fromUtf8(m_work.read("blocks.csv")).split('\n'))
            if (line.startsWith("B0.0,") || line.startsWith("F1.5/1,")) { // one pair
                const QStringList columns = line.split(',');
                const double length = columns[7].toDouble() - columns[6].toDouble();
                QVERIFY2(std::abs(length / 129'012'000 - 1) < 0.03, qPrintable(line));
                ++pairs;
            }
        QCOMPARE(pairs, 2);
        const Outcome run = m_work.run("run " + design + " --backend host --maths timed --steps 1 -o chunks.db");
        QVERIFY2(run.code == 0, qPrintable(run.errors));
        const Outcome compared = m_work.run("compare " + design + " chunks.db --json -o chunks.svg");
        const QJsonObject result = compared.json();
        QCOMPARE(result["blocks"]["matched"].toInt(), 34);
        QCOMPARE(result["blocks"]["unmatched"].toInt(), 0);
        // Parts sleep for their time at least.
        QVERIFY(result["makespan"]["measured_ns"].toDouble() >= result["makespan"]["predicted_ns"].toDouble());
        QVERIFY(m_work.read("chunks.svg").contains("<svg"));
        // Ten pairs of 16 and 24 parts lie under the blocks.
        const QString schema = m_work.run("query chunks.db --schema").output;
        QVERIFY2(
            schema.contains(QRegularExpression(QStringLiteral("ACTIVITY_KIND_KERNEL .*: %1 rows").arg(10 * (16 + 24)))),
            qPrintable(schema));
    }
};

PIPEWRIGHT_TEST(ExampleDesignsTest, QCoreApplication)
#include "tst_exampledesigns.moc"
