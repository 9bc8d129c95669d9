// SPDX-License-Identifier: GPL-3.0-or-later
// The errors that are told beside predictions, against the pages that list the runs: tests of their own make those
// pages.
#include "core/base/median.h"
#include "core/base/textfile.h"
#include "core/design/knownerror.h"
#include "core/design/redesign.h"
#include "makers/designs.h"
#include "testmain.h"
#include "testpaths.h"

#include <QRegularExpression>
#include <QTest>

#include <cmath>

using namespace pipewright;

namespace {

QString page(const std::string& where)
{
    return QString::fromStdString(readTextFile(std::string(PIPEWRIGHT_SOURCE_DIR) + "/" + where));
}

/// The numbers in a table's cells.
std::vector<double> numbersIn(const QString& text, const char* pattern)
{
    std::vector<double> found;
    QRegularExpressionMatchIterator each =
        QRegularExpression(pattern, QRegularExpression::MultilineOption).globalMatch(text);
    while (each.hasNext())
        found.push_back(std::abs(each.next().captured(1).toDouble()) / 100);
    return found;
}

void compare(const CheckedRuns& error, const std::vector<double>& errors)
{
    QCOMPARE(error.runs, int(errors.size()));
    const double median = medianOf(errors), largest = *std::max_element(errors.begin(), errors.end());
    QVERIFY2(std::abs(error.median - median) < 6e-4 && std::abs(error.largest - largest) < 6e-4,
             qPrintable(QString("%1 %2").arg(median).arg(largest)));
}

Design on(const char* cluster)
{
    DesignRequest request = test::requestFor("1f1b", 4, 8);
    request.model = "llama-3-8b";
    request.cluster = cluster;
    return makeDesign(request);
}

} // namespace

class KnownErrorTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void ofRates()
    {
        const std::optional<CheckedRuns> error = knownError(on("b200-nodes"));
        QVERIFY(error);
        compare(*error, numbersIn(page(error->where), R"(^\| [^|]+ \| (?:bf16|[\d.]+) \|.* ([+-][\d.]+) % \|$)"));
    }

    void ofRatesByTypeOfProducts()
    {
        struct Row {
            const char *cluster, *precision, *cell;
        };
        for (const auto& [cluster, precision, cell] : {Row{"h100-nodes", "bf16", "bf16"},
                                                       {"h100-nodes", "fp8", "fp8"},
                                                       {"h100-nodes", "fp8-parameters", "fp8"},
                                                       {"b200-nodes", "fp8", "fp8"}}) {
            DesignRequest request = test::requestFor("1f1b", 4, 8);
            request.model = "llama-3-8b";
            request.cluster = cluster;
            request.precision = precisionNamed(precision);
            request.framework = frameworkNamed("megatron");
            const std::optional<CheckedRuns> error = knownError(makeDesign(request));
            QVERIFY(error);
            const QString rows = QString(R"(^\| [^|]+ \| %1 \|.* ([+-][\d.]+) % \|$)").arg(cell);
            compare(*error, numbersIn(page(error->where), rows.toUtf8().constData()));
        }
    }

    void ofOneEfficiency()
    {
        const std::optional<CheckedRuns> error = knownError(on("a100-nodes"));
        QVERIFY(error);
        compare(*error,
                numbersIn(page(error->where), R"(^\| \d[^|]*\|[^|]*\|[^|]*\|[^|]*\|[^|]* s \|[^|]*\| ([+-][\d.]+) %)"));
    }

    void ofRecordings()
    {
        Design design = on("h100-nodes");
        design.costs.source = "measured: run.db";
        const std::optional<CheckedRuns> error = knownError(design);
        QVERIFY(error);
        QString real = page(error->where);
        real.truncate(real.indexOf("# Sleeping"));
        std::vector<double> errors;
        for (const QString& line : real.split(QChar('\n')))
            if (line.contains(" ms |"))
                for (const double each : numbersIn(line, R"(([+-][\d.]+) %)"))
                    errors.push_back(each);
        compare(*error, errors);
    }

    /// Every two schedules of a row: measured ratio against predicted.
    void ofSchedules()
    {
        const CheckedRuns& error = knownErrorOfSchedules();
        std::vector<double> errors;
        for (const QString& line : page(error.where).split(QChar('\n'))) {
            if (!line.startsWith("| gpt-"))
                continue;
            std::vector<std::pair<double, double>> row;
            QRegularExpressionMatchIterator each = QRegularExpression("([\\d.]+) → ([\\d.]+)").globalMatch(line);
            while (each.hasNext()) {
                const QRegularExpressionMatch match = each.next();
                row.emplace_back(match.captured(1).toDouble(), match.captured(2).toDouble());
            }
            for (std::size_t i = 0; i < row.size(); ++i)
                for (std::size_t j = i + 1; j < row.size(); ++j)
                    errors.push_back(std::abs(row[i].second / row[j].second / (row[i].first / row[j].first) - 1));
        }
        compare(error, errors);
    }

    void ofGivenTimesAndUncheckedRatesNothingIsKnown()
    {
        QVERIFY(!knownError(makeDesign(test::requestFor("1f1b", 4, 8))));
        Design design = on("b200-nodes");
        OperationRates unchecked = *design.cluster.devices[0].rates;
        unchecked.checked.clear();
        Cluster cluster = design.cluster;
        for (DeviceSpec& device : cluster.devices)
            device.rates = std::make_shared<const OperationRates>(unchecked);
        QVERIFY(!knownError(withCluster(design, cluster)));
        cluster = design.cluster;
        cluster.devices[1].rates = nullptr; // two kinds of devices
        QVERIFY(!knownError(withCluster(design, cluster)));
    }
};

PIPEWRIGHT_TEST(KnownErrorTest, NoApplication)
#include "tst_knownerror.moc"
