// SPDX-License-Identifier: GPL-3.0-or-later
// What the window that plans is asked: pins that cannot be and what they cost, why not, other families, models and
// clusters, entries that mean nothing.
#include "core/predict/predict.h"
#include "gui/plan/planfixture.h"
#include "gui/widgets/theme.h"
#include "gui/widgets/words.h"
#include "testmain.h"

#include <QApplication>
#include <QFile>
#include <QLineEdit>
#include <QListWidget>
#include <QTemporaryDir>

using namespace pipewright;
using test::PlanFixture;

class TestPlanQuestions : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void init() { Theme::dark().apply(*qApp); }

    void pinsThatCannotBeSayWhy()
    {
        PlanFixture fixture;
        fixture.window->fields().pin("tensor")->setCurrentText(QStringLiteral("3"));
        QVERIFY(fixture.plan());
        QVERIFY(fixture.window->result()->plans.empty());
        QVERIFY2(fixture.window->state().contains(QLatin1String("do not divide 4 devices")),
                 qPrintable(fixture.window->state()));
        QVERIFY(!fixture.window->openButton()->isEnabled());
        QCOMPARE(fixture.window->table().rowCount(), 0);
        // What the best without them takes is said.
        QVERIFY(fixture.comes(*fixture.answered));
        QVERIFY2(fixture.window->details().pinCosts().startsWith(QLatin1String("Without the pins (tensor=3)")),
                 qPrintable(fixture.window->details().pinCosts()));
    }

    void entriesThatMeanNothingAreMarkedAndNothingIsSearched()
    {
        PlanFixture fixture;
        PlanFields& fields = fixture.window->fields();
        const auto refused = [&](QWidget* field) {
            if (!fixture.plan())
                return QString();
            const QString note = fixture.noteOf(field);
            return fixture.window->result() || !field->isVisible() ? QString() : note;
        };
        fields.pin("pipeline")->setCurrentText(QStringLiteral("many"));
        QVERIFY2(refused(fields.pin("pipeline")).contains(QLatin1String("pipeline=many")),
                 qPrintable(fixture.noteOf(fields.pin("pipeline"))));
        fields.pin("pipeline")->setCurrentIndex(0);
        fields.memoryLimit()->setText(QStringLiteral("sixty apples"));
        QVERIFY(!refused(fields.memoryLimit()).isEmpty());
        QVERIFY(fixture.noteOf(fields.pin("pipeline")).isEmpty()); // the fault before is gone
        fields.memoryLimit()->clear();
        fields.familySet()->setCurrentIndex(PlanFields::Named);
        QVERIFY(refused(fields.familySet()).contains(QLatin1String("none is ticked")));
        fields.familySet()->setCurrentIndex(PlanFields::Synchronous);
        QVERIFY(fixture.plan());
        QVERIFY(fixture.window->result() && fixture.noteOf(fields.familySet()).isEmpty());
    }

    void aLimitThatNothingFitsSaysSo()
    {
        PlanFixture fixture;
        fixture.window->fields().memoryLimit()->setText(QStringLiteral("1 MiB"));
        QVERIFY(fixture.plan());
        QVERIFY2(fixture.window->state().contains(QLatin1String("No plan is possible, mostly: memory")),
                 qPrintable(fixture.window->state()));
    }

    void whatPinningCostsIsTheDifferenceToTheBestWithout()
    {
        PlanFixture fixture;
        const PlanResult free = findPlans(fixture.window->fields().request());
        fixture.window->fields().pin("recompute")->setCurrentText(QStringLiteral("full"));
        QVERIFY(fixture.plan());
        QVERIFY(fixture.comes(*fixture.answered));
        const Nanoseconds pinned = fixture.window->result()->plans.front().step, best = free.plans.front().step;
        QVERIFY(pinned > best);
        const QString said = fixture.window->details().pinCosts();
        QVERIFY2(said.startsWith(QStringLiteral("The pins (recompute=full) cost %1: without them the best takes %2")
                                     .arg(signedPercent(double(pinned) / double(best) - 1), durationText(best))),
                 qPrintable(said));
        // One that the best has costs nothing.
        fixture.window->fields()
            .pin("recompute")
            ->setCurrentText(QString::fromStdString(nameOf(free.plans.front().setting.recompute)));
        fixture.answered->clear();
        QVERIFY(fixture.plan());
        QVERIFY(fixture.comes(*fixture.answered));
        QVERIFY2(fixture.window->details().pinCosts().contains(QLatin1String("cost nothing")),
                 qPrintable(fixture.window->details().pinCosts()));
    }

    void whyNotIsAnsweredAsTheCommandDoes()
    {
        PlanFixture fixture;
        QVERIFY(!fixture.window->details().askButton()->isEnabled());
        QVERIFY(fixture.plan());
        QVERIFY(fixture.asks(QStringLiteral("tensor"), QStringLiteral("16")));
        QString answer = fixture.window->details().answer();
        QVERIFY2(answer.startsWith(QLatin1String("No plan has tensor=16:\n"))
                     && answer.contains(QLatin1String("do not divide")),
                 qPrintable(answer));
        QVERIFY(fixture.asks(QStringLiteral("recompute"), QStringLiteral("full")));
        PlanRequest fixed = fixture.window->fields().request();
        pin(fixed, "recompute=full", "a test");
        const Nanoseconds with = findPlans(fixed).plans.front().step;
        answer = fixture.window->details().answer();
        QVERIFY2(answer.startsWith(
                     QStringLiteral("The best with recompute=full: %1, %2 over the best of all")
                         .arg(durationText(with),
                              signedPercent(double(with) / double(fixture.window->result()->plans.front().step) - 1))),
                 qPrintable(answer));
        // Return in the value asks too, and begins no other search.
        fixture.answered->clear();
        fixture.window->details().value()->setFocus();
        QTest::keyClick(fixture.window->details().value(), Qt::Key_Return);
        QVERIFY(!fixture.window->isRunning() && fixture.comes(*fixture.answered));
        // What is no question is said, and the list stays.
        QVERIFY(fixture.asks(QStringLiteral("tensor"), QStringLiteral("x")));
        QVERIFY2(fixture.window->details().answer().contains(QLatin1String("tensor=x")),
                 qPrintable(fixture.window->details().answer()));
        QVERIFY(fixture.window->result());
    }

    void asynchronousFamiliesAreSearchedWhenTheyAreNamed()
    {
        PlanFixture fixture;
        PlanFields& fields = fixture.window->fields();
        QVERIFY(fields.request().families.empty());
        QVERIFY(fixture.plan());
        for (const TrainingPlan& plan : fixture.window->result()->plans)
            QVERIFY(!plan.family->updates);
        fields.familySet()->setCurrentIndex(PlanFields::Named);
        for (int row = 0; row < fields.families()->count(); ++row)
            if (fields.families()->item(row)->data(Qt::UserRole) == QStringLiteral("pipedream"))
                fields.families()->item(row)->setCheckState(Qt::Checked);
        QCOMPARE(fields.request().families, (std::vector<std::string>{"pipedream"}));
        fields.pin("pipeline")->setCurrentText(QStringLiteral("2"));
        QVERIFY(fixture.plan());
        for (const TrainingPlan& plan : fixture.window->result()->plans)
            QVERIFY(plan.family->updates);
        QVERIFY2(!fixture.window->result()->plans.empty(), qPrintable(fixture.window->state()));
    }

    void aConfigurationOfOnesOwnIsPlannedAndABrokenOneIsNamed()
    {
        PlanFixture fixture;
        QTemporaryDir folder;
        const QString path = folder.filePath(QStringLiteral("config.json"));
        const auto write = [&](const char* text) {
            QFile file(path);
            QVERIFY(file.open(QIODevice::WriteOnly));
            file.write(text);
        };
        write(R"({"model_type": "llama", "num_hidden_layers": 5, "hidden_size": 1024, "num_attention_heads": 8,
                  "num_key_value_heads": 4, "intermediate_size": 2816, "vocab_size": 32000,
                  "max_position_embeddings": 1024, "rms_norm_eps": 1e-5, "torch_dtype": "bfloat16",
                  "tie_word_embeddings": false, "hidden_act": "silu"})");
        PlanFields& fields = fixture.window->fields();
        fields.chooseModelFile(path);
        QCOMPARE(fields.model()->currentText(), QStringLiteral("config.json"));
        QCOMPARE(fields.request().shape.layers, 5);
        QCOMPARE(fields.sequence()->value(), int(fields.request().shape.sequence));
        QVERIFY(fixture.plan());
        QVERIFY2(!fixture.window->result()->plans.empty(), qPrintable(fixture.window->state()));
        write("{\"model_type\": \"llama\", ");
        fields.chooseModelFile(path);
        QVERIFY(!fixture.noteOf(fields.model()).isEmpty());
        QVERIFY(fixture.plan());
        QVERIFY(!fixture.window->result());
        QVERIFY2(fixture.window->state().contains(QLatin1String("config.json")), qPrintable(fixture.window->state()));
    }

    void moreDevicesThanTheClusterHasAreRefusedByName()
    {
        PlanFixture fixture;
        fixture.document.reset(test::presetDesign()); // a node of H200, 4 of them
        fixture.window = std::make_unique<PlanWindow>(fixture.document);
        fixture.finished = std::make_unique<QSignalSpy>(fixture.window.get(), &PlanWindow::finished);
        fixture.window->show();
        fixture.window->fields().devices()->setValue(64);
        QVERIFY(fixture.plan());
        QVERIFY2(fixture.window->state().contains(QLatin1String("the design's cluster has 4 devices")),
                 qPrintable(fixture.window->state()));
    }

    void anotherNumberOfDevicesIsComparedWithTheListBefore()
    {
        PlanFixture fixture;
        QVERIFY(fixture.plan());
        QVERIFY(fixture.window->details().change().isEmpty());
        const TrainingPlan four = fixture.window->result()->plans.front();
        QVERIFY(fixture.plan()); // the same again
        QVERIFY(fixture.window->details().change().isEmpty());
        fixture.window->fields().devices()->setValue(2);
        QSignalSpy compared(fixture.window.get(), &PlanWindow::compared);
        QVERIFY(fixture.plan());
        QVERIFY(!compared.isEmpty() || compared.wait(60'000));
        const TrainingPlan& two = fixture.window->result()->plans.front();
        const QString said = fixture.window->details().change();
        QVERIFY2(
            said.startsWith(QStringLiteral("Against the list before (4 → 2 devices), predicted:\nthe best step: %1 "
                                           "-> %2, ")
                                .arg(QString::fromStdString(formatDuration(four.step)),
                                     QString::fromStdString(formatDuration(two.step)))),
            qPrintable(said));
        QVERIFY2(said.contains(QStringLiteral("tokens a second of all devices: %1 -> %2, ")
                                   .arg(four.tokensPerSecondPerDevice * 4, 0, 'f', 0)
                                   .arg(two.tokensPerSecondPerDevice * 2, 0, 'f', 0)),
                 qPrintable(said));
        QVERIFY2(said.contains(QStringLiteral("\nled before: "))
                     || said.contains(QStringLiteral("\nthe same plan leads")),
                 qPrintable(said));
    }

    void aRowIsRefinedAndOpened()
    {
        PlanFixture fixture;
        PlanFields& fields = fixture.window->fields();
        fields.pin("pipeline")->setCurrentText("4");
        fields.pin("recompute")->setCurrentText("full");
        QVERIFY(fixture.plan());
        const std::shared_ptr<const PlanResult> result = fixture.window->result();
        QVERIFY(result && !result->plans.empty());
        QSignalSpy refined(fixture.window.get(), &PlanWindow::refined);
        QPushButton* const button = fixture.window->refineButton();
        QVERIFY(button->isEnabled() && fixture.window->details().refinement().isEmpty());
        QTest::mouseClick(button, Qt::LeftButton);
        QCOMPARE(button->text(), QStringLiteral("Stop"));
        QVERIFY(!refined.isEmpty() || refined.wait(60'000));
        QCOMPARE(button->text(), QStringLiteral("Refine"));
        const QString said = fixture.window->details().refinement();
        QVERIFY2(said.startsWith(QLatin1String("refined, not proved: ")) && said.contains(QLatin1String("->")),
                 qPrintable(said));
        QVERIFY2(fixture.window->state().startsWith(QLatin1String("Plan 1, refined")),
                 qPrintable(fixture.window->state()));
        fixture.window->open(0);
        QVERIFY(fixture.window->state().startsWith(QLatin1String("Plan 1, refined, is the design now")));
        QVERIFY(!(fixture.document.design() == result->plans.front().design));
        QVERIFY(predict(fixture.document.design()).metrics.makespan < result->plans.front().step);
        fixture.window->table().setCurrentPlan(1); // another row was not
        QVERIFY(fixture.window->details().refinement().isEmpty());
    }

    void aSlowNodeIsAChangeToo()
    {
        PlanFixture fixture;
        PlanFields& fields = fixture.window->fields();
        const auto choose = [&](const char* cluster) {
            fields.cluster()->setCurrentIndex(fields.cluster()->findData(QString(cluster)));
        };
        choose("h100-node");
        fields.slowNode()->setValue(10);
        QVERIFY(fixture.plan()); // of one node all devices would be slow
        QVERIFY2(fixture.window->state().contains(QLatin1String("see the field marked")),
                 qPrintable(fixture.window->state()));
        choose("h100-nodes");
        fields.slowNode()->setValue(0);
        QVERIFY(fixture.plan());
        const Nanoseconds before = fixture.window->result()->plans.front().step;
        fields.slowNode()->setValue(10);
        QSignalSpy compared(fixture.window.get(), &PlanWindow::compared);
        QVERIFY(fixture.plan());
        QVERIFY(fixture.window->result()->plans.front().step > before);
        QVERIFY(!compared.isEmpty() || compared.wait(60'000));
        QVERIFY2(fixture.window->details().change().contains(QLatin1String("a node 10 % slower")),
                 qPrintable(fixture.window->details().change()));
    }
};

PIPEWRIGHT_TEST(TestPlanQuestions, QApplication)
#include "tst_planquestions.moc"
