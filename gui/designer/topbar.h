// SPDX-License-Identifier: GPL-3.0-or-later
// The bar at the top: model, cluster and schedule as menus, undo and redo, the menu of everything, the field that
// finds, what stands in the way, and Run. Every part has a place that depends on the window's width alone: nothing
// folds and nothing moves. It shows the window's actions and owns none.
#pragma once

#include "gui/document/findings.h"

#include <QWidget>

class QAction;
class QPushButton;
class QToolButton;

namespace pipewright {

class Breadcrumb;
class FindField;
class RunController;
class RunStatus;
class WindowActions;

class TopBar : public QWidget {
    Q_OBJECT

public:
    /// `find`: takes its place in the bar.
    TopBar(Document& document, Findings& findings, const WindowActions& actions, RunController& run, FindField* find,
           QWidget* parent = nullptr);
    QPushButton* validity() const { return m_validity; }
    QPushButton* runButton() const { return m_run; }
    RunStatus& runStatus() const { return *m_runStatus; }
    void setRunning(bool running); ///< progress and Cancel stand in the place of Run
    QToolButton* undoButton() const { return m_undo; }
    QToolButton* redoButton() const { return m_redo; }
    QToolButton* menuButton() const { return m_menu; }
    Breadcrumb& breadcrumb() const { return *m_breadcrumb; }
    FindField* findField() const { return m_find; }
    QSize minimumSizeHint() const override;

Q_SIGNALS:
    void diagnosticsRequested();

protected:
    void resizeEvent(QResizeEvent* event) override;

private:
    void refresh();
    void showValidity();
    QString spareText() const;
    void arrange();
    QToolButton* makeButton(QAction* action, const QString& text);

    Document& m_document;
    Findings& m_findings;
    Breadcrumb* m_breadcrumb;
    QToolButton* m_undo;
    QToolButton* m_redo;
    QToolButton* m_menu;
    FindField* m_find;
    QPushButton* m_validity;
    QPushButton* m_run;
    RunStatus* m_runStatus;
};

} // namespace pipewright
