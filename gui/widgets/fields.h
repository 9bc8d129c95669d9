// SPDX-License-Identifier: GPL-3.0-or-later
// Number fields for edits that can also be made by dragging. An entry takes effect when finished (Return, Tab, an arrow
// key); Escape reverts it.
#pragma once

#include "core/base/diagnostic.h"
#include "core/base/units.h"

#include <QDoubleSpinBox>
#include <QLineEdit>
#include <QSpinBox>

#include <optional>

namespace pipewright {

/// A whole number, without buttons.
class NumberField : public QSpinBox {
    Q_OBJECT

public:
    NumberField(const QString& name, const QString& tip, QWidget* parent);

protected:
    void keyPressEvent(QKeyEvent* event) override;
};

/// A number that shows a decimal point in every locale and takes a comma for one.
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

/// A time with its unit, or nothing. Where the exact one is longer than the field, it is shown rounded and kept exact.
class TimeField : public QLineEdit {
    Q_OBJECT

public:
    TimeField(const QString& name, const QString& tip, QWidget* parent);
    void setTime(std::optional<Nanoseconds> time);

Q_SIGNALS:
    void entered(std::optional<pipewright::Nanoseconds> time); ///< none: the field was emptied
    void refused(const pipewright::Diagnostics& why);          ///< none: the invalid entry was reverted

protected:
    void keyPressEvent(QKeyEvent* event) override;

private:
    void finish();

    QString m_shown; ///< the text of the time that was set
};

} // namespace pipewright
