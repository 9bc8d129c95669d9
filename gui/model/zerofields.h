// SPDX-License-Identifier: GPL-3.0-or-later
// What the copies of a pipeline share out, to be chosen: the ZeRO level, and of the levels that have it, when gathered
// parameters are freed, how many stages ahead they are gathered, and when gradients are summed.
#pragma once

#include "core/base/units.h"
#include "core/schedule/zero.h"

#include <QComboBox>
#include <QSpinBox>
#include <QWidget>

namespace pipewright {

/// Adds the levels; each item's data is its number.
void addZeroLevels(QComboBox& combo);

class ZeroFields : public QWidget {
    Q_OBJECT

public:
    explicit ZeroFields(QWidget* parent);

    const Zero& value() const { return m_value; }
    /// `saved`: what level 1 saves, or would save, on the device that saves most; 0: not known.
    void setValue(const Zero& zero, Bytes saved);

Q_SIGNALS:
    void edited(const pipewright::Zero& zero);

private:
    void take();

    Zero m_value;
    QComboBox *m_level, *m_reshard, *m_reduce;
    QSpinBox* m_prefetch;
};

} // namespace pipewright
