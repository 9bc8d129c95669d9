// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/trace/notelist.h"

#include "core/base/diagnostic.h"
#include "gui/widgets/layouts.h"
#include "gui/widgets/words.h"

#include <QLineEdit>
#include <QListWidget>
#include <QPushButton>
#include <QShortcut>

#include <utility>

namespace pipewright {

NoteList::NoteList(std::function<TraceNote()> stretch, QWidget* parent)
    : QWidget(parent), m_stretch(std::move(stretch)), m_field(new QLineEdit(this)), m_list(new QListWidget(this)),
      m_remove(new QPushButton(tr("Remove"), this))
{
    m_field->setPlaceholderText(tr("Note on the measured or the visible range"));
    m_field->setAccessibleName(tr("New note"));
    m_list->setAccessibleName(tr("Notes"));
    m_list->setFrameShape(QFrame::NoFrame);
    m_list->setWordWrap(true);
    m_remove->setFocusPolicy(Qt::TabFocus);
    m_remove->setToolTip(tr("Remove the chosen note (Delete)"));
    auto* top = new QHBoxLayout;
    top->addWidget(m_field, 1);
    top->addWidget(m_remove);
    auto* layout = makeLayout<QVBoxLayout>(this, {0, 6, 0, 0});
    layout->addLayout(top);
    layout->addWidget(m_list, 1);
    connect(m_field, &QLineEdit::returnPressed, this, [this] { add(m_field->text()); });
    connect(m_remove, &QPushButton::clicked, this, &NoteList::removeCurrent);
    auto* erase = new QShortcut(QKeySequence::Delete, m_list);
    erase->setContext(Qt::WidgetShortcut);
    connect(erase, &QShortcut::activated, this, &NoteList::removeCurrent);
    connect(m_list, &QListWidget::currentRowChanged, this, [this](int row) {
        m_remove->setEnabled(row >= 0);
        if (row >= 0)
            Q_EMIT chosen(m_notes[row]);
    });
    setTrace({});
}

void NoteList::setTrace(const QString& trace)
{
    m_trace = trace;
    m_notes.clear();
    m_field->setEnabled(!trace.isEmpty());
    if (!trace.isEmpty()) {
        try {
            m_notes = readNotes(trace.toStdString());
        } catch (const Error& error) {
            m_field->setEnabled(false); // a new note would overwrite the unreadable file
            Q_EMIT failed(QString::fromUtf8(error.what()));
        }
    }
    fill();
}

void NoteList::fill()
{
    const QSignalBlocker quiet(m_list);
    m_list->clear();
    for (const TraceNote& note : m_notes) {
        QString when = tr("%1 from %2 on").arg(durationText(note.end - note.start), durationText(note.start));
        if (note.step >= 0)
            when += tr(", step %1").arg(note.step);
        auto* item = new QListWidgetItem(QStringLiteral("%1\n%2").arg(QString::fromStdString(note.text), when), m_list);
        item->setToolTip(QString::fromStdString(note.text));
    }
    m_remove->setEnabled(false);
}

bool NoteList::keep(std::vector<TraceNote> notes)
{
    try {
        writeNotes(m_trace.toStdString(), notes);
        m_notes = readNotes(m_trace.toStdString());
    } catch (const Error& error) {
        Q_EMIT failed(QString::fromUtf8(error.what()));
        return false;
    }
    fill();
    Q_EMIT changed();
    return true;
}

void NoteList::add(const QString& text)
{
    if (m_trace.isEmpty() || text.trimmed().isEmpty())
        return;
    TraceNote note = m_stretch();
    note.text = text.trimmed().toStdString();
    std::vector<TraceNote> notes = m_notes;
    notes.push_back(std::move(note));
    if (keep(std::move(notes)))
        m_field->clear();
}

void NoteList::removeCurrent()
{
    const int row = m_list->currentRow();
    if (row < 0)
        return;
    std::vector<TraceNote> notes = m_notes;
    notes.erase(notes.begin() + row);
    keep(std::move(notes));
}

} // namespace pipewright

#include "moc_notelist.cpp"
