// SPDX-License-Identifier: GPL-3.0-or-later
// How much blocks and devices vary when steps are shown under noise: two shares in percent. Measured costs include the
// measured spread of their blocks, which is used until the user types another value.
#pragma once

#include "core/predict/spread.h"

#include <QWidget>

namespace pipewright {

class ShareField;

class NoiseFields : public QWidget {
    Q_OBJECT

public:
    explicit NoiseFields(QWidget* parent = nullptr);
    void setCosts(const Costs& costs); ///< whether the blocks' spread can be "as measured"
    void setValue(const NoiseChoice& choice);
    void follow(NoiseFields& other); ///< keeps the values of both equal; takes the other's value first
    const NoiseChoice& value() const { return m_choice; }
    ShareField& block() { return *m_block; }
    ShareField& device() { return *m_device; }
    static QString explanation(); ///< of the table columns that depend on these fields

Q_SIGNALS:
    void edited(const pipewright::NoiseChoice& choice);

private:
    void refresh();
    void take();
    void change(const NoiseChoice& choice);

    NoiseChoice m_choice;
    bool m_measured = false;
    ShareField* m_block;
    ShareField* m_device;
};

} // namespace pipewright
