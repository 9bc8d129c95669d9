// SPDX-License-Identifier: GPL-3.0-or-later
// A list or table that takes the keyboard focus without making a row current. Qt makes the first row current on focus,
// which a view that acts on its current row would treat as a selection.
#pragma once

#include <QItemSelectionModel>
#include <QSignalBlocker>

namespace pipewright {

template<typename View>
class QuietFocus : public View {
public:
    using View::View;

protected:
    void focusInEvent(QFocusEvent* event) override
    {
        const bool chosen = this->currentIndex().isValid();
        const QSignalBlocker quiet(this), quietModel(this->selectionModel());
        View::focusInEvent(event);
        if (!chosen)
            this->selectionModel()->clearCurrentIndex(); // an arrow key then begins at the first row
    }
};

} // namespace pipewright
