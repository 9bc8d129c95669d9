// SPDX-License-Identifier: GPL-3.0-or-later
// The nodes of a cluster as fields: their number, the devices and network cards of one, and the switches between them.
// Values are not checked here but where they are applied (withChange() of core/cluster/nodes.h).
#pragma once

#include "core/cluster/nodes.h"

#include <QWidget>

class QDoubleSpinBox;
class QSpinBox;

namespace pipewright {

class NodeFields : public QWidget {
    Q_OBJECT

public:
    explicit NodeFields(int fieldWidth, QWidget* parent = nullptr);

    NodeChange value() const;
    void setValue(const Nodes& nodes); ///< without a signal; without nodes the fields cannot be used

Q_SIGNALS:
    void edited(); ///< by the user; a typed number when it is finished

private:
    QSpinBox* m_count;
    QSpinBox* m_devices;
    QSpinBox* m_cards;
    QSpinBox* m_perSwitch;
    QDoubleSpinBox* m_bandwidth; ///< GB/s
    QDoubleSpinBox* m_oversubscription;
};

} // namespace pipewright
