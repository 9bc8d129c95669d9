// SPDX-License-Identifier: GPL-3.0-or-later
// One step of the undo stack; Document::commit() pushes it. Undo restores the previous design, so no edit needs an
// inverse. Designs are immutable and shared by neighbouring steps and the Document. A step does not own predictions:
// for large designs they are many times the size of the design, and the Document keeps the recent ones.
#pragma once

#include "gui/document/document.h"

#include <QUndoCommand>

#include <utility>

namespace pipewright {

class DesignCommand : public QUndoCommand {
public:
    DesignCommand(Document& document, std::shared_ptr<const Design> after, const QString& text,
                  std::shared_ptr<Document::Outcome> outcome)
        : QUndoCommand(text), m_document(document), m_before(document.sharedDesign()), m_after(std::move(after)),
          m_beforeOutcome(document.m_outcome), m_first(std::move(outcome))
    {
    }
    void undo() override { m_document.show(m_before, m_beforeOutcome.lock()); }
    void redo() override
    {
        m_document.show(m_after, m_first ? std::exchange(m_first, nullptr) : m_afterOutcome.lock());
        m_afterOutcome = m_document.m_outcome;
    }

private:
    Document& m_document;
    const std::shared_ptr<const Design> m_before, m_after;
    const std::weak_ptr<Document::Outcome> m_beforeOutcome;
    std::weak_ptr<Document::Outcome> m_afterOutcome;
    std::shared_ptr<Document::Outcome> m_first; ///< of the first redo(), which is the edit itself
};

} // namespace pipewright
