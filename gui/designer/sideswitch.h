// SPDX-License-Identifier: GPL-3.0-or-later
// The switch Predicted | Measured | Both: which side of the numbers all views of a Document show. Enabled while a
// recording is laid over the design; the choice is kept for the next one, and between sessions in the settings. Its
// actions have shortcuts.
#pragma once

#include "gui/document/document.h"

#include <QWidget>

class QAction;
class QActionGroup;
class QSettings;

namespace pipewright {

class SideSwitch : public QWidget {
    Q_OBJECT

public:
    /// Sets the Document's side to what the settings say.
    SideSwitch(Document& document, QSettings& settings, QWidget* parent = nullptr);
    QAction* action(Side side) const;

private:
    void refresh();

    Document& m_document;
    QSettings& m_settings;
    QActionGroup* m_actions;
};

} // namespace pipewright
