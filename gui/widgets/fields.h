// SPDX-License-Identifier: GPL-3.0-or-later
// Number fields for edits that can also be made by dragging. An entry takes effect when finished (Return, Tab, an arrow
// key); Escape reverts it.
#pragma once

#include "core/base/diagnostic.h"
#include "core/base/units.h"

#include <QDoubleSpinBox>
#include <QLineEdit>
#include <QSpinBox>

#include <functional>
#include <optional>

namespace pipewright {

/// An integer field. An entry beyond the range can be typed in full ("99999" is not cut to "9999"). On leaving the
/// field, the nearest value in range replaces it, and a tooltip says so.
class CountField : public QSpinBox {
    Q_OBJECT

public:
    explicit CountField(QWidget* parent = nullptr);
    QValidator::State validate(QString& input, int& position) const override;
    void fixup(QString& input) const override;
    /// "99999 is beyond 1 to 9999; it is 9999 now"; empty once another value was taken.
    QString refusal() const { return m_refusal; }

private:
    std::optional<qlonglong> typed(QString input) const;

    mutable QString m_refusal;
};

/// Digits of one width and no buttons: the wheel and the arrow keys step.
void makePlain(QAbstractSpinBox& field);
/// A CountField for a dialog.
QSpinBox* makeCountField(const QString& name, int least, int most, int value, int width, QWidget* parent);

/// A field with a button beside it that chooses a file.
QWidget* withBrowse(QLineEdit* field, const std::function<void()>& browse, int width, QWidget* parent);

/// The same for the user's PyTorch module, FILE.py:build.
QWidget* withModuleBrowse(QLineEdit* field, int width, QWidget* parent);

/// A CountField without buttons, for the panels.
class NumberField : public CountField {
    Q_OBJECT

public:
    NumberField(const QString& name, const QString& tip, QWidget* parent);

protected:
    void keyPressEvent(QKeyEvent* event) override;
};

/// A decimal number. It shows a decimal point in every locale; a comma can be typed instead.
class DecimalField : public QDoubleSpinBox {
    Q_OBJECT

public:
    explicit DecimalField(QWidget* parent = nullptr);
    QValidator::State validate(QString& input, int& position) const override;
};

/// A share in percent, without buttons.
class ShareField : public DecimalField {
    Q_OBJECT

public:
    ShareField(const QString& name, const QString& tip, QWidget* parent);

protected:
    void keyPressEvent(QKeyEvent* event) override;
};

/// A time with its unit, or empty. An exact time that does not fit is shown rounded; leaving it unedited changes
/// nothing.
class TimeField : public QLineEdit {
    Q_OBJECT

public:
    TimeField(const QString& name, const QString& tip, QWidget* parent);
    void setTime(std::optional<Nanoseconds> time);

Q_SIGNALS:
    void entered(std::optional<pipewright::Nanoseconds> time); ///< nullopt: the field was emptied
    void refused(const pipewright::Diagnostics& why);          ///< empty: the invalid entry was reverted

protected:
    void keyPressEvent(QKeyEvent* event) override;

private:
    void finish();

    QString m_shown; ///< the text of the time that was set
};

} // namespace pipewright
