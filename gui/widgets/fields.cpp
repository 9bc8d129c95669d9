// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/widgets/fields.h"

#include "gui/widgets/theme.h"

#include <QKeyEvent>

#include <algorithm>

namespace pipewright {
namespace {

constexpr int fieldWidth = 92;
constexpr qsizetype longestExact = 10; // characters that fit

/// "18.522 ms", the exact one with the space of the rounded ones.
QString fieldText(Nanoseconds time)
{
    if (time == 0)
        return QStringLiteral("0 ms"); // instead of 0 ns
    QString text = QString::fromStdString(exactDuration(time));
    const auto unit = std::find_if(text.cbegin(), text.cend(), [](QChar c) { return c.isLetter(); });
    text.insert(unit - text.cbegin(), QLatin1Char(' '));
    return text.size() <= longestExact ? text : QString::fromStdString(formatDuration(time));
}

void setUp(QAbstractSpinBox& field, const QString& name, const QString& tip)
{
    field.setFont(Theme::numbers(TextSize::Small));
    field.setKeyboardTracking(false);
    field.setButtonSymbols(QAbstractSpinBox::NoButtons);
    field.setFixedWidth(fieldWidth);
    field.setAccessibleName(name);
    field.setToolTip(tip);
}

/// Escape reverts an unfinished entry; true when there was one.
template<typename Spin>
bool takesBack(Spin& field, const QLineEdit& edit, QKeyEvent& event)
{
    if (event.key() != Qt::Key_Escape)
        return false;
    const QString typed = edit.text();
    field.setValue(field.value());
    if (edit.text() == typed)
        return false;
    field.selectAll();
    event.accept();
    return true;
}

} // namespace

NumberField::NumberField(const QString& name, const QString& tip, QWidget* parent) : QSpinBox(parent)
{
    setUp(*this, name, tip);
}

void NumberField::keyPressEvent(QKeyEvent* event)
{
    if (!takesBack(*this, *lineEdit(), *event))
        QSpinBox::keyPressEvent(event);
}

ShareField::ShareField(const QString& name, const QString& tip, QWidget* parent) : QDoubleSpinBox(parent)
{
    setUp(*this, name, tip);
    setRange(0, 100);
    setDecimals(1);
    setSuffix(tr(" %"));
}

void ShareField::keyPressEvent(QKeyEvent* event)
{
    if (!takesBack(*this, *lineEdit(), *event))
        QDoubleSpinBox::keyPressEvent(event);
}

TimeField::TimeField(const QString& name, const QString& tip, QWidget* parent) : QLineEdit(parent)
{
    setFont(Theme::numbers(TextSize::Small));
    setFixedWidth(fieldWidth);
    setAccessibleName(name);
    setToolTip(tip);
    connect(this, &QLineEdit::editingFinished, this, &TimeField::finish);
}

void TimeField::setTime(std::optional<Nanoseconds> time)
{
    m_shown = time ? fieldText(*time) : QString();
    if (text() != m_shown)
        setText(m_shown);
    setCursorPosition(0); // show the leading digits
}

void TimeField::keyPressEvent(QKeyEvent* event)
{
    if (event->key() == Qt::Key_Escape && text() != m_shown) {
        setText(m_shown);
        selectAll();
        Q_EMIT refused({});
        event->accept();
        return;
    }
    QLineEdit::keyPressEvent(event);
}

void TimeField::finish()
{
    if (text() == m_shown)
        return;
    std::optional<Nanoseconds> time;
    try {
        if (const QString typed = text().trimmed(); !typed.isEmpty())
            time = parseDuration(typed.toStdString(), accessibleName().toStdString());
    } catch (const Error& error) {
        if (!hasFocus())
            setText(m_shown); // the user has left the field
        Q_EMIT refused(error.diagnostics());
        return;
    }
    Q_EMIT entered(time);
}

} // namespace pipewright

#include "moc_fields.cpp"
