// SPDX-License-Identifier: GPL-3.0-or-later
// The devices' shares of a stage as sliders that always sum to 1: moving one, or editing its field, scales the others
// in proportion. With several segments, all get the same shares.
#pragma once

#include <QWidget>

#include <vector>

class QSlider;

namespace pipewright {

class ShareField;

class RatioSliders : public QWidget {
    Q_OBJECT

public:
    explicit RatioSliders(QWidget* parent = nullptr);

    void setDevices(const std::vector<QString>& names, const std::vector<double>& shares);
    const std::vector<double>& shares() const { return m_shares; }
    void setShares(const std::vector<double>& shares); ///< without changed()
    QSlider* slider(int device) const { return m_sliders[device]; }

Q_SIGNALS:
    void changed(); ///< by the user
    void settled(); ///< by the user, and no slider is being dragged

private:
    void take(std::size_t device, double share);
    void announce();
    void refresh();

    std::vector<double> m_shares;
    std::vector<QSlider*> m_sliders;
    std::vector<ShareField*> m_fields;
};

} // namespace pipewright
