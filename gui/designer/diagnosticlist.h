// SPDX-License-Identifier: GPL-3.0-or-later
// What is found in the design, each with place and remedy. Stays open beside the window and follows the document. A
// click on an entry selects the block it names. Where devices lack memory, changes that make it fit are buttons.
#pragma once

#include "gui/document/findings.h"

#include <QDialog>

class QLabel;
class QListWidget;
class QPushButton;
class QVBoxLayout;

namespace pipewright {

class DiagnosticList : public QDialog {
    Q_OBJECT

public:
    DiagnosticList(Document& document, Findings& findings, QWidget* parent = nullptr);
    QListWidget* list() const { return m_list; }
    QList<QPushButton*> remedyButtons() const { return m_buttons; }

protected:
    void showEvent(QShowEvent* event) override;

private:
    void refresh();
    void showRemedies();

    Document& m_document;
    Findings& m_findings;
    QLabel* m_summary;
    QListWidget* m_list;
    QLabel* m_remedyHeading;
    QVBoxLayout* m_remedies;
    QList<QPushButton*> m_buttons;
};

/// The first block named in a diagnostic's place or text; nothing when it names none.
std::optional<Block> blockNamedIn(const Diagnostic& diagnostic);

} // namespace pipewright
