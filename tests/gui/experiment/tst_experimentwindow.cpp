// SPDX-License-Identifier: GPL-3.0-or-later
// Policies trained from the designer: curves grow while a child trains, a cancel keeps what is finished, what cannot
// be trained says why, and what a policy costs is told in numbers and words.
#include "core/predict/predict.h"
#include "core/predict/stability.h"
#include "core/predict/stepcosts.h"
#include "gui/experiment/experimentwindow.h"
#include "gui/experiment/lossplot.h"
#include "gui/experiment/stabilityplot.h"
#include "gui/widgets/theme.h"
#include "gui/widgets/valuetable.h"
#include "gui/widgets/words.h"
#include "makers/designs.h"
#include "testmain.h"
#include "testpaths.h"

#include <QApplication>
#include <QComboBox>
#include <QDoubleSpinBox>
#include <QListWidget>
#include <QPushButton>
#include <QSet>
#include <QSignalSpy>
#include <QSpinBox>
#include <QTemporaryDir>
#include <QTest>

#include <algorithm>
#include <cmath>

using namespace pipewright;

namespace {

struct Fixture {
    Document document;
    std::unique_ptr<ExperimentWindow> window;

    Fixture()
    {
        document.reset(test::familyDesign("1f1b", 4, 8));
        window = std::make_unique<ExperimentWindow>(document);
        window->setProgram(QStringLiteral(PIPEWRIGHT_PROGRAM));
        window->updates()->setValue(5);
        window->show();
    }
    QListWidgetItem* policy(const QString& name)
    {
        const auto found = window->policies()->findItems(name, Qt::MatchStartsWith);
        return found.isEmpty() ? nullptr : found.front();
    }
    void tickOnly(const QStringList& names)
    {
        for (int row = 0; row < window->policies()->count(); ++row)
            window->policies()->item(row)->setCheckState(Qt::Unchecked);
        for (const QString& name : names)
            policy(name)->setCheckState(Qt::Checked);
    }
    bool train()
    {
        QSignalSpy finished(window.get(), &ExperimentWindow::finished);
        window->button()->click();
        return QTest::qWaitFor([&] { return !finished.isEmpty(); }, 120'000);
    }
};

} // namespace

class TestExperimentWindow : public QObject {
    Q_OBJECT

    /// Pixels of nearly this colour: a line of some length has many.
    static int pixelsOf(QWidget& widget, const QColor& colour)
    {
        const QImage image = widget.grab().toImage();
        int count = 0;
        for (int y = 0; y < image.height(); ++y)
            for (int x = 0; x < image.width(); ++x) {
                const QColor there = image.pixelColor(x, y);
                count += std::abs(there.red() - colour.red()) + std::abs(there.green() - colour.green())
                             + std::abs(there.blue() - colour.blue())
                         < 30;
            }
        return count;
    }

private Q_SLOTS:
    void init() { Theme::dark().apply(*qApp); }

    void tickedPoliciesAreTrainedBesideTheSequentialRun()
    {
        Fixture fixture;
        fixture.tickOnly({QStringLiteral("1F1B"), QStringLiteral("PipeOptim")});
        QVERIFY(fixture.train());
        QVERIFY2(fixture.window->runs().size() == 3, qPrintable(fixture.window->state()));
        QVERIFY(fixture.window->runs()[0].reference);
        QCOMPARE(fixture.window->runs()[1].bitEqual, std::optional(true));
        QCOMPARE(fixture.window->runs()[2].bitEqual, std::optional(false));
        ValueTable* results = fixture.window->results();
        QCOMPARE(results->rowCount(), 3);
        QCOMPARE(results->text(1, 4), QStringLiteral("equal"));
        QCOMPARE(results->text(2, 5), QStringLiteral("3 2 1 0"));
        QCOMPARE(results->text(2, 6), QStringLiteral("2 2 2 1"));
        const auto& curves = fixture.window->plot().curves();
        QCOMPARE(curves.size(), std::size_t{3});
        for (const LossSeries& curve : curves)
            QCOMPARE(curve.seeds.at(0).size(), std::size_t{5});
        QCOMPARE(fixture.window->runs()[2].losses, curves[2].seeds[0]);
        QCOMPARE(fixture.window->button()->text(), QStringLiteral("Train"));

        // The curves are drawn, the second one in the colour of its place.
        LossPlot plot;
        plot.resize(700, 300);
        plot.begin(100);
        for (int i = 0; i < 100; ++i)
            plot.append(1, "falls", false, 1, 5 - i * 0.02);
        QVERIFY(pixelsOf(plot, Theme::of(plot).fills[1]) > 300);

        const QTemporaryDir folder;
        for (const char* name : {"a.csv", "a.svg", "a.db"}) {
            fixture.window->saveTo(folder.filePath(QLatin1String(name)));
            QVERIFY(QFile::exists(folder.filePath(QLatin1String(name))));
        }
        QVERIFY_THROWS_EXCEPTION(Error, fixture.window->saveTo(folder.filePath(QStringLiteral("a.png"))));
    }

    void everyModelThatIsSmallEnoughIsTrained()
    {
        Fixture fixture;
        QComboBox* model = nullptr;
        for (QComboBox* combo : fixture.window->findChildren<QComboBox*>())
            if (combo->accessibleName() == QLatin1String("Model"))
                model = combo;
        QVERIFY(model);
        QCOMPARE(model->currentData().toString(), QStringLiteral("byte-gpt-small"));
        for (const char* name : {"byte-mlp", "byte-llama"})
            QVERIFY2(model->findData(QLatin1String(name)) >= 0, name);
        QVERIFY(model->findData(QStringLiteral("llama-3-8b")) < 0);
        fixture.window->updates()->setValue(2);
        fixture.tickOnly({QStringLiteral("1F1B")});
        model->setCurrentIndex(model->findData(QStringLiteral("byte-llama")));
        QVERIFY(fixture.train());
        QVERIFY2(fixture.window->runs().size() == 2, qPrintable(fixture.window->state()));
        QCOMPARE(fixture.window->runs()[1].bitEqual, std::optional(true));
    }

    void equalCurvesAreAllSeen()
    {
        LossPlot plot;
        plot.resize(900, 400);
        plot.begin(100);
        for (int i = 0; i < 100; ++i)
            for (std::size_t curve = 0; curve < 4; ++curve)
                plot.append(curve, "the same", curve == 0, 1, 5 - i * 0.02);
        QVERIFY(pixelsOf(plot, Theme::of(plot).text) > 60);
        for (std::size_t curve = 1; curve < 4; ++curve)
            QVERIFY2(pixelsOf(plot, Theme::of(plot).fills[curve]) > 60, qPrintable(QString::number(curve)));
    }

    void aCancelKeepsWhatIsFinished()
    {
        Fixture fixture;
        fixture.tickOnly({QStringLiteral("1F1B")});
        fixture.window->updates()->setValue(5000);
        QSignalSpy finished(fixture.window.get(), &ExperimentWindow::finished);
        fixture.window->button()->click();
        QVERIFY2(QTest::qWaitFor([&] { return !fixture.window->plot().curves().empty(); }, 60'000),
                 qPrintable(fixture.window->state()));
        QCOMPARE(fixture.window->button()->text(), QStringLiteral("Cancel"));
        fixture.window->button()->click();
        QVERIFY(QTest::qWaitFor([&] { return !finished.isEmpty(); }, 60'000));
        QVERIFY2(fixture.window->state().contains(QLatin1String("cancelled")), qPrintable(fixture.window->state()));
        QVERIFY(!fixture.window->isRunning());
        QVERIFY(!fixture.window->plot().curves()[0].seeds[0].empty());
    }

    void whatCannotBeTrainedSaysWhy()
    {
        Fixture fixture;
        QListWidgetItem* xpipe = fixture.policy(QStringLiteral("XPipe"));
        QListWidgetItem* spectrain = fixture.policy(QStringLiteral("SpecTrain"));
        QVERIFY(!(xpipe->flags() & Qt::ItemIsUserCheckable));
        QVERIFY2(xpipe->toolTip().contains(QLatin1String("Adam")), qPrintable(xpipe->toolTip()));
        QVERIFY(spectrain->flags() & Qt::ItemIsUserCheckable);
        fixture.window->optimizer()->setCurrentIndex(1);
        QVERIFY(xpipe->flags() & Qt::ItemIsUserCheckable);
        QVERIFY(!(spectrain->flags() & Qt::ItemIsUserCheckable));
        QVERIFY2(spectrain->toolTip().contains(QLatin1String("momentum")), qPrintable(spectrain->toolTip()));
        // This document has costs and no model.
        QVERIFY(!(fixture.policy(QStringLiteral("this design"))->flags() & Qt::ItemIsUserCheckable));
        fixture.tickOnly({});
        fixture.window->button()->click();
        QVERIFY(!fixture.window->isRunning());
        QVERIFY(fixture.window->state().contains(QLatin1String("at least one")));
    }

    void whatAPolicyCostsIsTold()
    {
        Fixture fixture;
        fixture.window->momentum()->setValue(0.9);
        fixture.window->policies()->setCurrentItem(fixture.policy(QStringLiteral("PipeOptim")));
        ValueTable* stages = fixture.window->stages();
        QCOMPARE(stages->rowCount(), 4);
        QCOMPARE(stages->text(0, 1), QStringLiteral("3"));
        QCOMPARE(stages->text(0, 4), QStringLiteral("2"));
        QCOMPARE(stages->text(3, 4), QStringLiteral("1"));
        // The published limits: 0.034 without prediction and 0.072 with it, three updates late.
        QVERIFY2(stages->text(0, 6).startsWith(QLatin1String("0.072")), qPrintable(stages->text(0, 6)));
        QVERIFY(fixture.window->lesson().contains(QLatin1String("widens")));
        fixture.window->momentum()->setValue(0);
        QVERIFY2(fixture.window->lesson().contains(QLatin1String("prediction narrows")),
                 qPrintable(fixture.window->lesson()));
        QVERIFY2(stages->text(0, 6).startsWith(QLatin1String("0.26")), qPrintable(stages->text(0, 6)));
        const auto& points = fixture.window->stability().points();
        QVERIFY(points.front().predicted < points.front().plain);
        QVERIFY(points[55].predicted > points[55].plain);
        StabilityPlot limits;
        limits.resize(500, 300);
        const int before = pixelsOf(limits, Theme::of(limits).accent);
        limits.setPolicy(3, 3);
        QVERIFY(pixelsOf(limits, Theme::of(limits).accent) > before + 300);
        fixture.window->policies()->setCurrentItem(fixture.policy(QStringLiteral("1F1B")));
        QVERIFY(fixture.window->lesson().contains(QLatin1String("Nothing is stale")));
        fixture.window->policies()->setCurrentItem(fixture.policy(QStringLiteral("CDP-v2")));
        QCOMPARE(stages->text(0, 1), QStringLiteral("1"));
        QCOMPARE(stages->text(3, 1), QStringLiteral("0"));
    }

    void theCostsOfAStepStandBesideEachOther()
    {
        Fixture fixture;
        const ValueTable& costs = *fixture.window->costs();
        const int own = fixture.window->policies()->count() - 1;
        QCOMPARE(costs.rowCount(), own + 1);
        const auto check = [&](int row, const Design& design) {
            const Prediction prediction = predict(design);
            const StepCosts wanted = stepCosts(prediction.program, prediction.timeline);
            QCOMPARE(costs.text(row, 1), QString::number(wanted.devices));
            const auto size = [&costs](int r, int column) { // of a table in one unit
                return double(parseSize(typedQuantity(costs.text(r, column)), "size")) / double(Bytes{1} << 30);
            };
            for (const auto& [column, bytes] : {std::pair(2, wanted.activations), std::pair(4, wanted.parameters),
                                                std::pair(6, wanted.weightTraffic)}) {
                QVERIFY2(costs.text(row, column).endsWith(QLatin1String("GiB")), qPrintable(costs.text(row, column)));
                QCOMPARE(size(row, column), double(bytes) / double(Bytes{1} << 30));
            }
            QCOMPARE(costs.text(row, 8), QString::number(wanted.transfersInRow));
        };
        check(own, fixture.document.design());
        QCOMPARE(costs.text(own, 0), QStringLiteral("this design"));
        QStringList parameters; // a policy that keeps older versions holds more than one that flushes
        for (int row = 0; row < own; ++row)
            parameters << costs.text(row, 4);
        QVERIFY2(QSet<QString>(parameters.begin(), parameters.end()).size() > 1,
                 qPrintable(parameters.join(QLatin1Char(' '))));
        fixture.document.reset(test::familyDesign("gpipe", 2, 8));
        check(own, fixture.document.design()); // and follows the design
        QCOMPARE(costs.text(own, 1), QStringLiteral("2"));
    }

    void whereTheTwoLinesCross()
    {
        for (const int staleness : {1, 2, 3, 7}) {
            const double momentum = momentumWherePredictionHelps(staleness);
            QVERIFY(momentum > 0.01 && momentum < 0.9);
            const auto gain = [&](double at) {
                return largestStableRate(at, staleness, staleness) - largestStableRate(at, staleness, 0);
            };
            QVERIFY(gain(momentum + 0.01) > 0);
            QVERIFY(gain(momentum - 0.01) < 0);
        }
        QCOMPARE(momentumWherePredictionHelps(0), 0.0);
        PolicyComparison odd;
        odd.rows = 7;
        QVERIFY_THROWS_EXCEPTION(Error, policyDesign(comparablePolicies().front(), odd));
    }
};

PIPEWRIGHT_TEST(TestExperimentWindow, QApplication)
#include "tst_experimentwindow.moc"
