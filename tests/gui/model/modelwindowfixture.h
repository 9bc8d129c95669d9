// SPDX-License-Identifier: GPL-3.0-or-later
// A shown window of the model over a design made of presets, and its fields by their accessible names.
#pragma once

#include "gui/model/modelwindow.h"
#include "makers/designs.h"

#include <QTabWidget>
#include <QTest>

#include <memory>

namespace pipewright::test {

struct ModelWindowFixture {
    Document document;
    std::unique_ptr<ModelWindow> window;

    /// `page`: a tab of ModelWindow.
    explicit ModelWindowFixture(int page)
    {
        document.reset(presetDesign());
        window = std::make_unique<ModelWindow>(document);
        window->tabs()->setCurrentIndex(page);
        window->show();
        (void)QTest::qWaitForWindowActive(window.get());
    }
    const std::vector<int>& cut() const { return document.design().layersPerStage; }
};

template<class Field>
Field* named(QWidget& in, const QString& name)
{
    for (Field* field : in.findChildren<Field*>())
        if (field->accessibleName() == name)
            return field;
    return nullptr;
}

} // namespace pipewright::test
