// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/model/nodefields.h"

#include "gui/widgets/fields.h"
#include "gui/widgets/labels.h"
#include "gui/widgets/layouts.h"

#include <QDoubleSpinBox>
#include <QFormLayout>
#include <QSignalBlocker>
#include <QSpinBox>

#include <algorithm>

namespace pipewright {

namespace {

constexpr double gigabyte = 1e9;

} // namespace

NodeFields::NodeFields(int fieldWidth, QWidget* parent) : QWidget(parent)
{
    QFormLayout* form = makeForm(this);
    const auto addRow = [&](const QString& text, QAbstractSpinBox* field, const QString& tip) {
        field->setAccessibleName(text);
        field->setToolTip(tip);
        field->setFixedWidth(fieldWidth);
        makePlain(*field);
        field->setKeyboardTracking(false);
        form->addRow(makeCaptionOf(field, text), field);
    };
    const auto count = [&](const QString& text, const QString& tip, int least) {
        auto* field = new CountField(this);
        field->setRange(least, mostOfNodes);
        addRow(text, field, tip);
        connect(field, &QSpinBox::valueChanged, this, &NodeFields::edited);
        return field;
    };
    const auto number = [&](const QString& text, const QString& tip, double least, double most) {
        auto* field = new QDoubleSpinBox(this);
        field->setRange(least, most);
        addRow(text, field, tip);
        connect(field, &QDoubleSpinBox::valueChanged, this, &NodeFields::edited);
        return field;
    };
    m_count = count(tr("Nodes"), tr("How many nodes there are"), 1);
    m_devices = count(tr("Devices per node"), tr("Between these the cluster's own link holds"), 1);
    m_cards = count(tr("Network cards per node"), tr("Shared by the devices of a node that send at the same time"), 1);
    m_bandwidth = number(tr("Bandwidth of a card"), tr("In one direction; 0: unlimited"), 0, 1e6);
    m_bandwidth->setSuffix(tr(" GB/s"));
    m_perSwitch = count(tr("Nodes under one switch"),
                        tr("Nodes of different switches send through the network between the switches"), 0);
    m_perSwitch->setSpecialValueText(tr("all"));
    m_oversubscription =
        number(tr("Oversubscription"),
               tr("What the nodes under a switch could send, over what passes to other switches"), 1, mostOfNodes);
}

NodeChange NodeFields::value() const
{
    return {m_count->value(),     m_devices->value(),          m_cards->value(),
            m_perSwitch->value(), m_oversubscription->value(), m_bandwidth->value() * gigabyte};
}

void NodeFields::setValue(const Nodes& nodes)
{
    const QSignalBlocker quiet(this);
    setEnabled(nodes.devices > 0);
    m_count->setValue(nodes.count);
    m_devices->setValue(std::max(1, nodes.devices));
    m_cards->setValue(nodes.cards);
    m_bandwidth->setValue(nodes.network.bandwidth / gigabyte);
    m_perSwitch->setValue(nodes.perSwitch);
    m_oversubscription->setValue(nodes.oversubscription);
}

} // namespace pipewright

#include "moc_nodefields.cpp"
