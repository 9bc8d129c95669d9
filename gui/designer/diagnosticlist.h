// SPDX-License-Identifier: GPL-3.0-or-later
// The design's diagnostics, worst first, each with place and remedy. Stays open beside the window and follows the
// document. A click on an entry selects the block it names.
#pragma once

#include "gui/document/document.h"

#include <QDialog>

class QLabel;
class QListWidget;

namespace pipewright {

class DiagnosticList : public QDialog {
    Q_OBJECT

public:
    explicit DiagnosticList(Document& document, QWidget* parent = nullptr);
    QListWidget* list() const { return m_list; }

protected:
    void changeEvent(QEvent* event) override;

private:
    void refresh();

    Document& m_document;
    QLabel* m_summary;
    QListWidget* m_list;
};

/// The first block named in a diagnostic's place or text; nothing when it names none.
std::optional<Block> blockNamedIn(const Diagnostic& diagnostic);

} // namespace pipewright
