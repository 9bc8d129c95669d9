// SPDX-License-Identifier: GPL-3.0-or-later
// The bar at the top: the document's name and state, common actions, validity, the overlaid trace, and the primary
// action. It shows the window's actions and owns none.
#pragma once

#include "gui/document/document.h"

#include <QWidget>

class QAction;
class QLabel;
class QLineEdit;
class QMenu;
class QPushButton;
class QToolButton;

namespace pipewright {

class TopBar : public QWidget {
    Q_OBJECT

public:
    struct Actions {
        QAction* undo;
        QAction* redo;
        QAction* run;
        QAction* newSchedule;
        QAction* shortcuts;
        QMenu* schedule;
        QMenu* explore;
        QMenu* overlay;
        QMenu* all;
    };

    TopBar(Document& document, const Actions& actions, QWidget* parent = nullptr);
    QPushButton* validity() const { return m_validity; }
    QPushButton* runButton() const { return m_run; }
    QToolButton* undoButton() const { return m_undo; }
    QToolButton* redoButton() const { return m_redo; }
    QLineEdit* searchField() const { return m_search; }
    void setRunText(const QString& text);

Q_SIGNALS:
    void diagnosticsRequested();
    void searched(const QString& text, int direction); ///< +1: the next hit, -1: the one before
    void searchLeft();                                 ///< Escape in the field

protected:
    bool eventFilter(QObject* watched, QEvent* event) override;
    void changeEvent(QEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;

private:
    void refresh();
    void showTitle();
    QToolButton* makeButton(QAction* action, const QString& text);
    QToolButton* makeMenuButton(QMenu* menu, const QString& text, const QString& name);

    Document& m_document;
    QLabel* m_title;
    QLabel* m_state;
    QToolButton* m_undo;
    QToolButton* m_redo;
    QToolButton* m_overlay;
    QLineEdit* m_search;
    QPushButton* m_validity;
    QPushButton* m_run;
    QString m_fullTitle;
};

} // namespace pipewright
