// SPDX-License-Identifier: GPL-3.0-or-later
// The page of the model: dimensions, batch, presets and cluster typed in and chosen, with what is predicted of them
// beside it and what is refused below its field.
#include "core/design/redesign.h"
#include "gui/model/modelfields.h"
#include "gui/model/modelwindowfixture.h"
#include "gui/widgets/factlist.h"
#include "gui/widgets/fields.h"
#include "gui/widgets/theme.h"
#include "gui/widgets/valuetable.h"
#include "gui/widgets/words.h"
#include "testmain.h"

#include <QApplication>
#include <QComboBox>
#include <QLabel>
#include <QTabWidget>
#include <QTest>

#include <numeric>

using namespace pipewright;
using namespace pipewright::test;

namespace {

struct ModelPageFixture : ModelWindowFixture {
    ModelPageFixture() : ModelWindowFixture(ModelWindow::Model) {}
};

} // namespace

class TestModelPage : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void init() { Theme::dark().apply(*qApp); }

    void theModelsDimensionsAndTheBatchAreTypedIn()
    {
        ModelPageFixture fixture;
        ModelFields& fields = fixture.window->model();
        const Design before = fixture.document.design();
        const auto enter = [&](const char* name, int value) {
            CountField* field = fields.field(QLatin1String(name));
            field->setFocus();
            field->selectAll();
            QTest::keyClicks(field, QString::number(value));
            QTest::keyClick(field, Qt::Key_Return);
        };
        const auto shape = [&]() -> const ModelShape& { return fixture.document.design().workload->shape; };
        // Each as one step of the history, and what the command line's `new` would make of that model.
        enter("Sequence", 1024);
        QCOMPARE(shape().sequence, std::int64_t(1024));
        QCOMPARE(fixture.document.undoStack()->count(), 1);
        QCOMPARE(shape().name, before.workload->shape.name); // the batch does not make it another model
        ModelShape wanted = before.workload->shape;
        wanted.sequence = 1024;
        QVERIFY(fixture.document.design() == withModel(before, wanted));
        const int layers = shape().layers - 2;
        enter("Layers", layers);
        QCOMPARE(shape().layers, layers);
        QVERIFY2(shape().name.ends_with(", changed"), shape().name.c_str());
        QCOMPARE(std::accumulate(fixture.cut().begin(), fixture.cut().end(), 0), layers + 2); // embedding and head
        enter("Hidden size", 2048);
        QCOMPARE(shape().hidden, std::int64_t(2048));
        enter("Microbatch size", 2);
        QCOMPARE(shape().microbatchSize, std::int64_t(2));
        enter("Microbatches", 12);
        QCOMPARE(fixture.document.design().schedule.microbatches, 12);
        fields.precision().setCurrentIndex(fields.precision().findText(QStringLiteral("fp32")));
        Q_EMIT fields.precision().activated(fields.precision().currentIndex());
        QVERIFY(shape().dataType == DataType::Fp32);
        // What cannot be says why, and the field says what is.
        enter("Key-value heads", 7);
        auto* note = named<QLabel>(fields, QStringLiteral("About Key-value heads"));
        QVERIFY(note && note->isVisible() && !note->text().isEmpty());
        QVERIFY2(fixture.window->fault().isEmpty(), qPrintable(fixture.window->fault())); // said once
        QCOMPARE(fields.field(QStringLiteral("Key-value heads"))->value(), shape().keyValueHeads);
        enter("Microbatch size", 1);
        QVERIFY(!note->isVisible());
        // Everything back.
        while (fixture.document.undoStack()->canUndo())
            fixture.document.undoStack()->undo();
        QVERIFY(fixture.document.design() == before);
        QCOMPARE(fields.field(QStringLiteral("Layers"))->value(), before.workload->shape.layers);
    }

    void theModelsPageSaysWhatIsPredictedOfIt()
    {
        ModelPageFixture fixture;
        ModelFields& fields = fixture.window->model();
        const auto step = [&] { return fields.predicted().value(QStringLiteral("step")); };
        const auto predicted = [&] { return durationText(fixture.document.prediction()->metrics.makespan); };
        const auto choose = [](QComboBox& combo, int index) {
            combo.setCurrentIndex(index);
            Q_EMIT combo.activated(index);
        };
        QCOMPARE(step(), predicted());
        QVERIFY(!fields.predicted().value(QStringLiteral("parameters")).isEmpty());
        const QString before = step();
        fields.field(QStringLiteral("Layers"))->setValue(fields.field(QStringLiteral("Layers"))->value() * 2);
        QCOMPARE(step(), predicted());
        QVERIFY(step() != before);
        // Recompute and cluster without leaving the page; the other pages show the same.
        choose(fields.recompute(), 2);
        QCOMPARE(fixture.document.design().schedule.recomputeOf(0), Recompute::Full);
        QCOMPARE(named<QComboBox>(*fixture.window, QStringLiteral("Recomputed in every stage"))->currentIndex(), 2);
        QCOMPARE(step(), predicted());
        choose(fields.cluster(), fields.cluster().findData(QStringLiteral("h200-node")));
        QVERIFY(fixture.document.design().cluster.devices.front().name.starts_with("H200"));
        QCOMPARE(step(), predicted());
        const Bytes peak = fixture.document.prediction()->metrics.devices[0].peakBytes;
        QVERIFY(peak > 0);
        QVERIFY(!fields.predicted().value(QStringLiteral("of its memory")).isEmpty());
    }

    void whatAFrameworkKeepsIsChosenAndNamed()
    {
        ModelPageFixture fixture;
        ModelFields& fields = fixture.window->model();
        const Design before = fixture.document.design();
        QCOMPARE(fields.framework().currentText(), QStringLiteral("none"));
        QVERIFY(fields.predicted().value(QStringLiteral("reserved")).isEmpty());
        const auto choose = [&](const char* name) {
            fields.framework().setCurrentIndex(fields.framework().findText(QLatin1String(name)));
            Q_EMIT fields.framework().activated(fields.framework().currentIndex());
        };
        choose("megatron");
        QVERIFY2(fixture.window->fault().isEmpty(), qPrintable(fixture.window->fault()));
        QVERIFY(fixture.document.design() == withFramework(before, *frameworkNamed("megatron")));
        QCOMPARE(fields.framework().currentText(), QStringLiteral("megatron"));
        QVERIFY(fields.framework().toolTip().contains(QLatin1String("a vocabulary padded to multiples of 128")));
        QVERIFY(!fields.predicted().value(QStringLiteral("reserved")).isEmpty());
        choose("own"); // made in a file; there is nothing to take
        QCOMPARE(fields.framework().currentText(), QStringLiteral("megatron"));
        QCOMPARE(fixture.document.undoStack()->count(), 1);
        fixture.document.undoStack()->undo();
        QVERIFY(fixture.document.design() == before);
        QCOMPARE(fields.framework().currentText(), QStringLiteral("none"));
    }

    void presetsOfModelsAndClustersAreTaken()
    {
        ModelPageFixture fixture;
        QComboBox& models = fixture.window->model().preset();
        models.setCurrentIndex(models.findData(QStringLiteral("llama-3-8b")));
        Q_EMIT models.activated(models.currentIndex());
        QVERIFY2(fixture.window->fault().isEmpty(), qPrintable(fixture.window->fault()));
        QCOMPARE(fixture.document.design().workload->shape.layers, 32);
        QCOMPARE(models.currentData().toString(), QStringLiteral("llama-3-8b"));
        QComboBox& clusters = fixture.window->clusterPreset();
        const int devices = fixture.document.design().schedule.devices();
        clusters.setCurrentIndex(clusters.findData(QStringLiteral("h200-node")));
        Q_EMIT clusters.activated(clusters.currentIndex());
        QCOMPARE(int(fixture.document.design().cluster.devices.size()), devices);
        QVERIFY(fixture.document.design().cluster.devices.front().name.starts_with("H200"));
        QVERIFY(fixture.window->devices().text(0, 1).startsWith(QLatin1String("H200")));
    }
};

PIPEWRIGHT_TEST(TestModelPage, QApplication)
#include "tst_modelpage.moc"
