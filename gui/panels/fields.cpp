// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/panels/fields.h"

#include "gui/theme.h"

#include <QKeyEvent>

namespace pipewright {
namespace {

constexpr int twinWidth = 92;
constexpr std::size_t longestExact = 10; // characters that fit

void setUp(QAbstractSpinBox& field, const QString& name, const QString& tip)
{
    field.setFont(Theme::numbers(TextSize::Small));
    field.setKeyboardTracking(false);
    field.setButtonSymbols(QAbstractSpinBox::NoButtons);
    field.setFixedWidth(twinWidth);
    field.setAccessibleName(name);
    field.setToolTip(tip);
}

/// Escape takes back what is typed and not taken yet; true when there was something.
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
    setFixedWidth(twinWidth);
    setAccessibleName(name);
    setToolTip(tip);
    connect(this, &QLineEdit::editingFinished, this, &TimeField::finish);
}

void TimeField::setTime(std::optional<Nanoseconds> time)
{
    std::string shown;
    if (time)
        shown = exactDuration(*time);
    if (shown.size() > longestExact)
        shown = formatDuration(*time);
    m_shown = QString::fromStdString(shown);
    if (text() != m_shown)
        setText(m_shown);
    setCursorPosition(0); // what stands in front counts most
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
            setText(m_shown); // nobody is there any more to put it right
        Q_EMIT refused(error.diagnostics());
        return;
    }
    Q_EMIT entered(time);
}

} // namespace pipewright
