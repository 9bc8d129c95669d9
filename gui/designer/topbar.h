// SPDX-License-Identifier: GPL-3.0-or-later
// The bar at the top: the design's model, cluster and schedule, common actions, validity, the overlaid trace, and Run.
// It shows the window's actions and owns none. In a narrow window buttons move into a menu behind "⋯", the rightmost
// first; their places do not depend on names and numbers.
#pragma once

#include "gui/document/findings.h"

#include <QWidget>

#include <vector>

class QAction;
class QLabel;
class QLineEdit;
class QMenu;
class QPushButton;
class QToolButton;

namespace pipewright {

class Breadcrumb;
class RunController;
class RunStatus;
class WindowActions;

class TopBar : public QWidget {
    Q_OBJECT

public:
    TopBar(Document& document, Findings& findings, const WindowActions& actions, RunController& run,
           QWidget* parent = nullptr);
    QPushButton* validity() const { return m_validity; }
    QPushButton* runButton() const { return m_run; }
    RunStatus& runStatus() const { return *m_runStatus; }
    void setRunning(bool running); ///< progress and Cancel stand in the place of Run
    QToolButton* undoButton() const { return m_undo; }
    QToolButton* redoButton() const { return m_redo; }
    QToolButton* moreButton() const { return m_more; }
    QToolButton* recordedButton() const { return m_recorded; }
    Breadcrumb& breadcrumb() const { return *m_breadcrumb; }
    QLineEdit* searchField() const { return m_search; }
    QSize minimumSizeHint() const override;
    void showSearch(); ///< gives the field the focus, and unfolds it

Q_SIGNALS:
    void diagnosticsRequested();
    void searched(const QString& text, int direction); ///< +1: the next hit, -1: the one before
    void searchLeft();                                 ///< Escape in the field

protected:
    bool eventFilter(QObject* watched, QEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;

private:
    /// A part that may be folded, and its replacement in the menu: an action or a menu.
    struct Foldable {
        QWidget* widget;
        QAction* action;
        QMenu* menu;
    };
    void refresh();
    void showValidity();
    void fold();
    void showMore();
    QToolButton* makeButton(QAction* action, const QString& text);
    QToolButton* makeMenuButton(QMenu* menu, const QString& text, const QString& name);

    Document& m_document;
    Findings& m_findings;
    const WindowActions& m_actions;
    Breadcrumb* m_breadcrumb;
    QLabel* m_state;
    QToolButton* m_undo;
    QToolButton* m_redo;
    QToolButton* m_overlay;
    QToolButton* m_more;
    QToolButton* m_recorded;
    QLineEdit* m_search;
    QPushButton* m_validity;
    QPushButton* m_run;
    RunStatus* m_runStatus;
    bool m_running = false;
    bool m_searching = false;          ///< the field is shown; other parts fold for it
    std::vector<Foldable> m_foldables; ///< the first one folds first
};

} // namespace pipewright
