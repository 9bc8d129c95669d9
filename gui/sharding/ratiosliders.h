// SPDX-License-Identifier: GPL-3.0-or-later
// The devices' shares of a stage as sliders that always add up to the whole: moving one takes from, or gives to,
// the others in proportion, and so does the field beside it. With several segments they move all of them alike.
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
    void changed(); ///< by a person

private:
    void take(std::size_t device, double share);
    void refresh();

    std::vector<double> m_shares;
    std::vector<QSlider*> m_sliders;
    std::vector<ShareField*> m_fields;
};

} // namespace pipewright
