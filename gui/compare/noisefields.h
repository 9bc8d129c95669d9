// SPDX-License-Identifier: GPL-3.0-or-later
// How much blocks and devices vary when steps are shown under noise: two shares in percent. Costs that were measured
// bring the spread of their blocks along, which is taken until a person types another.
#pragma once

#include "core/predict/spread.h"

#include <QWidget>

namespace pipewright {

class ShareField;

class NoiseFields : public QWidget {
    Q_OBJECT

public:
    explicit NoiseFields(QWidget* parent = nullptr);
    void setCosts(const Costs& costs); ///< whether "as measured" can be said of blocks
    void setValue(const NoiseChoice& choice);
    void follow(NoiseFields& other); ///< takes its value, now and later, and gives it its own
    const NoiseChoice& value() const { return m_choice; }
    ShareField& block() { return *m_block; }
    ShareField& device() { return *m_device; }
    static QString explanation(); ///< of the columns that follow from it

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
