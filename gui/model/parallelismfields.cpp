// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/model/parallelismfields.h"

#include "gui/widgets/fields.h"
#include "gui/widgets/labels.h"
#include "gui/widgets/layouts.h"

#include <QCheckBox>
#include <QFormLayout>
#include <QHBoxLayout>
#include <QSignalBlocker>
#include <QSpinBox>

#include <initializer_list>

namespace pipewright {

ParallelismFields::ParallelismFields(int fieldWidth, QWidget* parent)
    : QWidget(parent), m_sequence(new QCheckBox(tr("split tokens between matrices"), this)),
      m_foldedExperts(new QCheckBox(tr("folded"), this)), m_nodeDispatch(new QCheckBox(tr("once to each node"), this))
{
    QFormLayout* form = makeForm(this);
    /// `row`: the field, or what has it.
    const auto addRow = [&](const QString& text, QWidget* field, const QString& tip, QWidget* row = nullptr) {
        field->setAccessibleName(text);
        field->setToolTip(tip);
        row = row != nullptr ? row : field;
        row->setFixedWidth(fieldWidth);
        form->addRow(makeCaptionOf(field, text), row);
    };
    const auto makeSpin = [&] {
        auto* field = new CountField(this);
        field->setRange(1, 65'536);
        makePlain(*field);
        field->setKeyboardTracking(false);
        connect(field, &QSpinBox::valueChanged, this, &ParallelismFields::edited);
        return field;
    };
    const auto spin = [&](const QString& text, const QString& tip) {
        CountField* field = makeSpin();
        addRow(text, field, tip);
        return field;
    };
    m_tensor = spin(tr("Tensor parallel"), tr("Devices of a stage that share every matrix"));
    addRow(tr("Sequence parallel"), m_sequence, tr("Tensor-parallel devices split the tokens between matrices"));
    m_context = spin(tr("Context parallel"), tr("Devices of a stage that share every sequence"));
    m_expert = makeSpin();
    auto* experts = new QWidget(this);
    auto* besides = makeLayout<QHBoxLayout>(experts, {0, 0, 0, 0}, 10);
    besides->addWidget(m_expert, 1);
    besides->addWidget(m_foldedExperts);
    addRow(tr("Expert parallel"), m_expert, tr("Copies of the pipeline that share out the experts"), experts);
    m_foldedExperts->setAccessibleName(tr("Folded experts"));
    m_foldedExperts->setToolTip(tr("Tensor- and context-parallel devices share out the experts too, each with whole "
                                   "ones (Megatron's expert-tensor-parallel-size 1)"));
    m_data = spin(tr("Data parallel"), tr("Copies of the pipeline, which sum their gradients after a step"));
    m_overlap = spin(tr("Exchanges overlapped"),
                     tr("Share of their communication that is hidden behind computing, where there is enough of that"));
    m_overlap->setRange(0, 100);
    m_overlap->setSuffix(tr(" %"));
    m_expertSpread = new DecimalField(this);
    m_expertSpread->setRange(1, 65'536);
    m_expertSpread->setDecimals(3);
    m_expertSpread->setSingleStep(0.1);
    makePlain(*m_expertSpread);
    m_expertSpread->setKeyboardTracking(false);
    addRow(tr("Fullest copy"), m_expertSpread,
           tr("Tokens of the expert-parallel copy that gets the most of them, over the mean of all copies"));
    addRow(tr("Tokens to experts"), m_nodeDispatch,
           tr("A token goes once to each node with experts that it visits, and is handed on there, in place of a copy "
              "for every expert (DeepEP)"));
    // Without copies that share out experts nothing is uneven, and no token is sent.
    const auto showSharing = [this, form] {
        for (QWidget* const field : std::initializer_list<QWidget*>{m_expertSpread, m_nodeDispatch}) {
            form->labelForField(field)->setVisible(m_expert->value() > 1);
            field->setVisible(m_expert->value() > 1);
        }
    };
    connect(m_expert, &QSpinBox::valueChanged, this, showSharing);
    showSharing();
    connect(m_expertSpread, &QDoubleSpinBox::valueChanged, this, &ParallelismFields::edited);
    connect(m_sequence, &QCheckBox::toggled, this, &ParallelismFields::edited);
    connect(m_foldedExperts, &QCheckBox::toggled, this, &ParallelismFields::edited);
    connect(m_nodeDispatch, &QCheckBox::toggled, this, &ParallelismFields::edited);
}

Parallelism ParallelismFields::value() const
{
    return {.tensor = m_tensor->value(),
            .sequence = m_sequence->isChecked(),
            .context = m_context->value(),
            .expert = m_expert->value(),
            .data = m_data->value(),
            .overlap = m_overlap->value() / 100.0,
            .expertSpread = m_expertSpread->value(),
            .foldedExperts = m_foldedExperts->isChecked(),
            .nodeDispatch = m_nodeDispatch->isChecked() && m_expert->value() > 1};
}

void ParallelismFields::setValue(const Parallelism& parallel)
{
    const QSignalBlocker quiet(this);
    m_tensor->setValue(parallel.tensor);
    m_sequence->setChecked(parallel.sequence);
    m_context->setValue(parallel.context);
    m_expert->setValue(parallel.expert);
    m_data->setValue(parallel.data);
    m_overlap->setValue(qRound(parallel.overlap * 100));
    m_expertSpread->setValue(parallel.expertSpread);
    m_foldedExperts->setChecked(parallel.foldedExperts);
    m_nodeDispatch->setChecked(parallel.nodeDispatch);
}

} // namespace pipewright

#include "moc_parallelismfields.cpp"
