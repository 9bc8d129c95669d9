// SPDX-License-Identifier: GPL-3.0-or-later
// The window that plans, over a document with a small design.
#pragma once

#include "core/model/transformer.h"
#include "gui/plan/plandetails.h"
#include "gui/plan/planfields.h"
#include "gui/plan/plantable.h"
#include "gui/plan/planwindow.h"
#include "gui/widgets/notedfield.h"
#include "makers/designs.h"

#include <QComboBox>
#include <QPushButton>
#include <QSignalSpy>
#include <QSpinBox>
#include <QTest>

#include <memory>

namespace pipewright::test {

/// Of 6 layers on 4 GPUs: every plan of it is predicted in a moment.
inline Design smallDesign()
{
    const PresetLibrary presets;
    NewDesign choice;
    ModelShape shape = presets.model("llama-3-8b");
    shape.layers = 6;
    choice.workload = makeWorkload(shape, Optimizer::AdamW, "a test");
    choice.cluster = presets.cluster("h100-nodes", 4);
    return designFromModel(choice);
}

struct PlanFixture {
    Document document;
    std::unique_ptr<PlanWindow> window;
    std::unique_ptr<QSignalSpy> finished, answered;

    PlanFixture()
    {
        document.reset(smallDesign());
        window = std::make_unique<PlanWindow>(document);
        finished = std::make_unique<QSignalSpy>(window.get(), &PlanWindow::finished);
        answered = std::make_unique<QSignalSpy>(window.get(), &PlanWindow::answered);
        window->show();
        (void)QTest::qWaitForWindowActive(window.get());
    }
    static bool comes(const QSignalSpy& spy)
    {
        return QTest::qWaitFor([&spy] { return !spy.isEmpty(); }, 240'000);
    }
    bool plan()
    {
        finished->clear();
        QTest::mouseClick(window->button(), Qt::LeftButton);
        return comes(*finished);
    }
    bool asks(const QString& dimension, const QString& value)
    {
        answered->clear();
        PlanDetails& details = window->details();
        details.dimension()->setCurrentIndex(details.dimension()->findData(dimension));
        details.value()->setCurrentText(value);
        QTest::mouseClick(details.askButton(), Qt::LeftButton);
        return comes(*answered);
    }
    /// Of a search that takes long, and finds its first plans early.
    void takeLargeModel()
    {
        PlanFields& fields = window->fields();
        fields.model()->setCurrentIndex(fields.model()->findData(QStringLiteral("llama-3-8b")));
        fields.cluster()->setCurrentIndex(fields.cluster()->findData(QStringLiteral("h100-nodes")));
        fields.devices()->setValue(64);
        fields.batch()->setValue(512);
    }
    /// Without the no-break spaces before units.
    QString why() const { return window->details().why().replace(QChar(QChar::Nbsp), QLatin1Char(' ')); }
    QString noteOf(QWidget* field) const { return NotedField::around(field)->note(); }
};

} // namespace pipewright::test
