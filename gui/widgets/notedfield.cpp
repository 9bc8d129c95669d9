// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/widgets/notedfield.h"

#include "gui/widgets/fields.h"
#include "gui/widgets/layouts.h"
#include "gui/widgets/themechange.h"
#include "gui/widgets/words.h"

#include <algorithm>

namespace pipewright {

bool isAbout(const Diagnostic& diagnostic, const char* option)
{
    return QString::fromStdString(diagnostic.where).split(QStringLiteral(", ")).contains(QLatin1String(option));
}

NotedField::NotedField(QWidget* field, QWidget* parent)
    : QWidget(parent), m_field(field), m_note(makeCaption({}, TextSize::Small, this))
{
    onThemeChange(this, [this] { setTone(m_note, m_said.isEmpty() ? Tone::Plain : m_tone); });
    auto* layout = makeLayout<QVBoxLayout>(this, {0, 0, 0, 0}, 3);
    layout->addWidget(field);
    layout->addWidget(m_note);
    setFixedWidth(field->maximumWidth());
    m_note->setWordWrap(true);
    m_note->setFixedWidth(field->maximumWidth());
    m_note->setTextInteractionFlags(Qt::TextSelectableByMouse);
    m_note->setAccessibleName(tr("About %1").arg(field->accessibleName()));
    m_note->hide();
    if (auto* count = qobject_cast<CountField*>(field)) {
        connect(count, &QSpinBox::editingFinished, this, &NotedField::refresh);
        connect(count, &QSpinBox::valueChanged, this, &NotedField::refresh);
    }
}

NotedField* NotedField::around(const QWidget* field)
{
    return qobject_cast<NotedField*>(field->parentWidget());
}

void NotedField::setNote(const QString& text, Tone tone)
{
    m_said = text;
    m_tone = tone;
    refresh();
}

void NotedField::setNote(const Diagnostics& diagnostics, const char* option)
{
    QStringList lines;
    bool error = false;
    for (Diagnostic each : diagnostics)
        if (isAbout(each, option)) {
            error = error || each.severity == Severity::Error;
            if (each.where == option)
                each.where.clear();
            lines << proseText(each);
        }
    setNote(lines.join(QLatin1Char('\n')), error ? Tone::Bad : Tone::Plain);
}

void NotedField::refresh()
{
    QStringList lines;
    if (const auto* count = qobject_cast<CountField*>(m_field); count && !count->refusal().isEmpty())
        lines << count->refusal();
    if (!m_said.isEmpty())
        lines << m_said;
    m_note->setText(lines.join(QLatin1Char('\n')));
    setTone(m_note, m_said.isEmpty() ? Tone::Plain : m_tone);
    // Qt returns -1 for an empty note.
    m_note->setMinimumHeight(std::max(0, m_note->heightForWidth(m_note->maximumWidth())));
    m_note->setVisible(!lines.isEmpty());
}

} // namespace pipewright

#include "moc_notedfield.cpp"
