// SPDX-License-Identifier: GPL-3.0-or-later
// A box, grid or form with its margins and the space between its parts, in one line; their classes come with it.
#pragma once

#include <QBoxLayout>
#include <QFormLayout>
#include <QGridLayout>
#include <QWidget>

namespace pipewright {

/// `parent` null: it is added to another layout. `spacing` negative: the style's.
template<typename Layout>
Layout* makeLayout(QWidget* parent, const QMargins& margins, int spacing = -1)
{
    auto* layout = new Layout(parent);
    layout->setContentsMargins(margins);
    layout->setSpacing(spacing);
    return layout;
}

/// A form without margins.
inline QFormLayout* makeForm(QWidget* parent, int betweenColumns = 16, int betweenRows = 9)
{
    auto* form = makeLayout<QFormLayout>(parent, {0, 0, 0, 0}, betweenRows);
    form->setHorizontalSpacing(betweenColumns);
    return form;
}

} // namespace pipewright
