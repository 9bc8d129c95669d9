// SPDX-License-Identifier: GPL-3.0-or-later
// The degrees of parallelism of a design, as fields: the group of devices that holds a stage, and the number of copies
// of the pipeline. Values are not checked here but where they are applied (core/model/parallelism.h).
#pragma once

#include "core/model/modelshape.h"

#include <QWidget>

class QCheckBox;
class QDoubleSpinBox;
class QSpinBox;

namespace pipewright {

class ParallelismFields : public QWidget {
    Q_OBJECT

public:
    explicit ParallelismFields(int fieldWidth, QWidget* parent = nullptr);

    Parallelism value() const;
    void setValue(const Parallelism& parallel); ///< without a signal

Q_SIGNALS:
    void edited(); ///< by the user; a typed number when it is finished

private:
    QSpinBox* m_tensor;
    QCheckBox* m_sequence;
    QSpinBox* m_context;
    QSpinBox* m_expert;
    QCheckBox *m_foldedExperts, *m_nodeDispatch;
    QSpinBox* m_data;
    QSpinBox* m_overlap;
    QDoubleSpinBox* m_expertSpread;
};

} // namespace pipewright
