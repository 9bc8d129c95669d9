// SPDX-License-Identifier: GPL-3.0-or-later
// The message of a refused edit, with a button for the remedy when one exists. A RemedyButton alone is placed beside a
// field; a RefusalNote is shown over the lanes, where the edit was tried.
#pragma once

#include "core/predict/editrequest.h"

#include <QFrame>
#include <QPushButton>

namespace pipewright {

class Document;
class Paragraph;

/// "Allow the first stage to split": applies the remedy and then the refused edit, as one step of the undo history.
class RemedyButton : public QPushButton {
    Q_OBJECT

public:
    explicit RemedyButton(Document& document, QWidget* parent = nullptr);
    /// Hidden when no remedy is found.
    void offer(const EditRequest& refused);
    void withdraw() { hide(); }

private:
    Document& m_document;
    std::vector<EditRequest> m_requests;
};

class RefusalNote : public QFrame {
    Q_OBJECT

public:
    RefusalNote(Document& document, QWidget* parent);
    /// Shows itself near a point of its parent when there is a remedy; false: there is none.
    bool offer(const EditRequest& refused, const QString& why, QPoint near);

private:
    void style();
    Paragraph* m_why;
    RemedyButton* m_remedy;
};

} // namespace pipewright
