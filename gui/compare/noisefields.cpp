// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/compare/noisefields.h"

#include "core/design/costs.h"
#include "gui/widgets/fields.h"
#include "gui/widgets/labels.h"
#include "gui/widgets/layouts.h"

#include <QSignalBlocker>

namespace pipewright {

namespace {

constexpr double measured = -1; // percent; stands for "as measured"

} // namespace

NoiseFields::NoiseFields(QWidget* parent)
    : QWidget(parent),
      m_block(new ShareField(tr("Blocks vary by"),
                             tr("Standard deviation of every block's time by itself, from step to step"), this)),
      m_device(new ShareField(tr("Devices vary by"),
                              tr("Standard deviation of a device's speed: all of its blocks are as much slower or "
                                 "faster in a step"),
                              this))
{
    auto* row = makeLayout<QHBoxLayout>(this, {0, 0, 0, 0}, 6);
    const auto add = [&](const QString& text, ShareField* field) {
        row->addWidget(makeCaptionOf(field, text));
        row->addWidget(field);
        connect(field, &QDoubleSpinBox::valueChanged, this, &NoiseFields::take);
    };
    add(tr("blocks ±"), m_block);
    row->addSpacing(6);
    add(tr("devices ±"), m_device);
    refresh();
}

QString NoiseFields::explanation()
{
    return tr("Of the step's time over sampled costs: every block's time varies, and every device's speed, by the "
              "shares given above");
}

void NoiseFields::setCosts(const Costs& costs)
{
    m_measured = costs.hasSpread();
    refresh();
}

void NoiseFields::setValue(const NoiseChoice& choice)
{
    m_choice = choice;
    refresh();
}

void NoiseFields::refresh()
{
    const QSignalBlocker quietBlock(m_block), quietDevice(m_device);
    m_block->setSpecialValueText(m_measured ? tr("measured") : QString());
    m_block->setRange(m_measured ? measured : 0, 100);
    m_block->setValue(m_choice.block ? *m_choice.block * 100 : m_measured ? measured : usualSpread * 100);
    m_device->setValue(m_choice.device * 100);
}

void NoiseFields::take()
{
    NoiseChoice choice;
    if (m_block->value() >= 0)
        choice.block = m_block->value() / 100;
    else
        m_block->setValue(measured); // replaces any other negative number
    choice.device = m_device->value() / 100;
    change(choice);
}

void NoiseFields::change(const NoiseChoice& choice)
{
    if (choice == m_choice)
        return;
    setValue(choice);
    Q_EMIT edited(choice);
}

void NoiseFields::follow(NoiseFields& other)
{
    setValue(other.value());
    connect(&other, &NoiseFields::edited, this, &NoiseFields::change);
    connect(this, &NoiseFields::edited, &other, &NoiseFields::change);
}

} // namespace pipewright

#include "moc_noisefields.cpp"
