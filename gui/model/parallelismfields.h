// SPDX-License-Identifier: GPL-3.0-or-later
// The degrees of parallelism of a design, as fields: which group of devices holds a stage, and
// how many copies of the pipeline there are. Values are not checked here but where they are applied
// (core/workload/parallelism.h).
#pragma once

#include "core/workload/modelshape.h"

#include <QWidget>

class QCheckBox;
class QSpinBox;

namespace pipewright {

class ParallelismFields : public QWidget {
    Q_OBJECT

public:
    explicit ParallelismFields(int fieldWidth, QWidget* parent = nullptr);

    Parallelism value() const;
    void setValue(const Parallelism& parallel); ///< without a signal

Q_SIGNALS:
    void edited(); ///< by a person; a number once it is typed

private:
    QSpinBox* m_tensor;
    QCheckBox* m_sequence;
    QSpinBox* m_context;
    QSpinBox* m_expert;
    QSpinBox* m_data;
    QSpinBox* m_overlap;
};

} // namespace pipewright
