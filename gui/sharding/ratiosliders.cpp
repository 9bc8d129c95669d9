// SPDX-License-Identifier: GPL-3.0-or-later
// One slider and one percent field per device. O(devices) per change.
#include "gui/sharding/ratiosliders.h"

#include "gui/widgets/fields.h"
#include "gui/widgets/labels.h"
#include "gui/widgets/layouts.h"

#include <QSignalBlocker>
#include <QSlider>

#include <algorithm>
#include <cmath>

namespace pipewright {

namespace {

constexpr int steps = 1000;

} // namespace

RatioSliders::RatioSliders(QWidget* parent) : QWidget(parent)
{
    auto* grid = makeLayout<QGridLayout>(this, {0, 0, 0, 0});
    grid->setColumnStretch(1, 1);
}

void RatioSliders::setDevices(const std::vector<QString>& names, const std::vector<double>& shares)
{
    auto* grid = static_cast<QGridLayout*>(layout());
    while (QLayoutItem* item = grid->takeAt(0)) {
        delete item->widget();
        delete item;
    }
    m_sliders.clear();
    m_fields.clear();
    m_shares = shares;
    for (std::size_t d = 0; d < names.size(); ++d) {
        const int row = static_cast<int>(d);
        auto* slider = new QSlider(Qt::Horizontal, this);
        slider->setRange(0, steps);
        slider->setPageStep(steps / 20);
        slider->setAccessibleName(tr("Share of device %1, %2").arg(d).arg(names[d]));
        grid->addWidget(makeCaption(tr("%1  %2").arg(d).arg(names[d]), TextSize::Small, this), row, 0);
        grid->addWidget(slider, row, 1);
        grid->addWidget(
            m_fields.emplace_back(new ShareField(tr("Percent of device %1").arg(d),
                                                 tr("Sets the slider as a number; the others keep their ratio"), this)),
            row, 2);
        m_sliders.push_back(slider);
        connect(slider, &QSlider::valueChanged, this, [this, d](int value) {
            take(d, static_cast<double>(value) / steps);
            announce();
        });
        connect(slider, &QSlider::sliderReleased, this, &RatioSliders::settled);
        connect(m_fields.back(), &QDoubleSpinBox::valueChanged, this, [this, d](double percent) {
            take(d, percent / 100);
            announce();
        });
    }
    refresh();
}

void RatioSliders::setShares(const std::vector<double>& shares)
{
    m_shares = shares;
    refresh();
}

void RatioSliders::take(std::size_t device, double share)
{
    if (m_shares.size() == 1)
        share = 1;
    const double others = 1 - m_shares[device];
    for (std::size_t d = 0; d < m_shares.size(); ++d)
        if (d != device)
            m_shares[d] = others > 1e-9 ? m_shares[d] * (1 - share) / others
                                        : (1 - share) / static_cast<double>(m_shares.size() - 1);
    m_shares[device] = share;
    refresh();
}

void RatioSliders::announce()
{
    Q_EMIT changed();
    if (std::none_of(m_sliders.begin(), m_sliders.end(), [](const QSlider* slider) { return slider->isSliderDown(); }))
        Q_EMIT settled();
}

void RatioSliders::refresh()
{
    for (std::size_t d = 0; d < m_sliders.size(); ++d) {
        const QSignalBlocker quietSlider(m_sliders[d]), quietField(m_fields[d]);
        m_sliders[d]->setValue(static_cast<int>(std::lround(m_shares[d] * steps)));
        m_fields[d]->setValue(m_shares[d] * 100);
    }
}

} // namespace pipewright

#include "moc_ratiosliders.cpp"
