// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/widgets/fields.h"

#include "gui/widgets/layouts.h"
#include "gui/widgets/theme.h"
#include "gui/widgets/words.h"

#include <QFileDialog>
#include <QKeyEvent>
#include <QPushButton>
#include <QToolTip>

namespace pipewright {
namespace {

constexpr int fieldWidth = 92;
constexpr qsizetype longestExact = 10; // characters that fit

/// "18.522 ms": the exact time, or the rounded one where that is too long, in units that can be typed.
QString fieldText(Nanoseconds time)
{
    if (time == 0)
        return QStringLiteral("0\u00a0ms"); // instead of 0 ns
    const QString text = quantityText(exactDuration(time));
    return text.size() <= longestExact ? text : quantityText(formatDuration(time));
}

void setUp(QAbstractSpinBox& field, const QString& name, const QString& tip)
{
    makePlain(field);
    field.setFont(Theme::numbers(TextSize::Small));
    field.setKeyboardTracking(false);
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

CountField::CountField(QWidget* parent) : QSpinBox(parent)
{
    QLocale locale = QLocale::c();
    locale.setNumberOptions(QLocale::OmitGroupSeparator);
    setLocale(locale);
    connect(this, &QSpinBox::textChanged, this, [this] {
        if (!m_refusal.isEmpty() && !m_refusal.endsWith(text() + tr(" now")))
            m_refusal.clear();
    });
}

std::optional<qlonglong> CountField::typed(QString input) const
{
    if (!prefix().isEmpty() && input.startsWith(prefix()))
        input.remove(0, prefix().size());
    if (!suffix().isEmpty() && input.endsWith(suffix()))
        input.chop(suffix().size());
    bool isNumber = false;
    const qlonglong value = input.trimmed().toLongLong(&isNumber);
    return isNumber ? std::optional(value) : std::nullopt;
}

QValidator::State CountField::validate(QString& input, int& position) const
{
    const auto value = typed(input);
    if (value && (*value > maximum() || *value < minimum()))
        return QValidator::Intermediate;
    return QSpinBox::validate(input, position);
}

void CountField::fixup(QString& input) const
{
    const auto value = typed(input);
    if (!value || (*value >= minimum() && *value <= maximum()))
        return QSpinBox::fixup(input);
    const qlonglong nearest = *value > maximum() ? maximum() : minimum();
    input = prefix() + QString::number(nearest) + suffix();
    m_refusal = tr("%1 is beyond %2 to %3; it is %4 now").arg(*value).arg(minimum()).arg(maximum()).arg(input);
    QToolTip::showText(mapToGlobal(QPoint(0, height())), m_refusal, const_cast<CountField*>(this));
}

NumberField::NumberField(const QString& name, const QString& tip, QWidget* parent) : CountField(parent)
{
    setUp(*this, name, tip);
}

void NumberField::keyPressEvent(QKeyEvent* event)
{
    if (!takesBack(*this, *lineEdit(), *event))
        CountField::keyPressEvent(event);
}

DecimalField::DecimalField(QWidget* parent) : QDoubleSpinBox(parent)
{
    QLocale locale = QLocale::c();
    locale.setNumberOptions(QLocale::OmitGroupSeparator);
    setLocale(locale);
}

QValidator::State DecimalField::validate(QString& input, int& position) const
{
    input = withDecimalPoint(input);
    return QDoubleSpinBox::validate(input, position);
}

ShareField::ShareField(const QString& name, const QString& tip, QWidget* parent) : DecimalField(parent)
{
    setUp(*this, name, tip);
    setRange(0, 100);
    setDecimals(1);
    setSuffix(tr("\u00a0%"));
}

void ShareField::keyPressEvent(QKeyEvent* event)
{
    if (!takesBack(*this, *lineEdit(), *event))
        DecimalField::keyPressEvent(event);
}

void makePlain(QAbstractSpinBox& field)
{
    field.setButtonSymbols(QAbstractSpinBox::NoButtons);
    field.setFont(Theme::numbers());
}

QSpinBox* makeCountField(const QString& name, int least, int most, int value, int width, QWidget* parent)
{
    auto* field = new CountField(parent);
    field->setRange(least, most);
    field->setValue(value);
    makePlain(*field);
    field->setFixedWidth(width);
    field->setAccessibleName(name);
    return field;
}

QWidget* withBrowse(QLineEdit* field, const std::function<void()>& browse, int width, QWidget* parent)
{
    auto* row = new QWidget(parent);
    auto* layout = makeLayout<QHBoxLayout>(row, {0, 0, 0, 0});
    auto* button = new QPushButton(CountField::tr("Browse…"), row);
    button->setAutoDefault(false);
    layout->addWidget(field, 1);
    layout->addWidget(button);
    row->setFixedWidth(width);
    QObject::connect(button, &QPushButton::clicked, row, browse);
    return row;
}

QWidget* withModuleBrowse(QLineEdit* field, int width, QWidget* parent)
{
    field->setPlaceholderText(QStringLiteral("FILE.py:build"));
    field->setAccessibleName(CountField::tr("Module"));
    const auto browse = [field] {
        const QString path = QFileDialog::getOpenFileName(field->window(), CountField::tr("Your module"), {},
                                                          CountField::tr("Python (*.py);;All files (*)"));
        if (!path.isEmpty())
            field->setText(path + QStringLiteral(":build"));
    };
    return withBrowse(field, browse, width, parent);
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
        if (const std::string typed = typedQuantity(text()); !typed.empty())
            time = parseDuration(typed, accessibleName().toStdString());
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
