// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/trace/devicetimelist.h"

#include "gui/widgets/theme.h"
#include "gui/widgets/words.h"

#include <QHeaderView>
#include <QRegularExpression>
#include <QSignalBlocker>

#include <algorithm>
#include <map>
#include <numeric>

namespace pipewright {

namespace {

constexpr int gapsShown = 8;
constexpr std::size_t linksShown = 12;

} // namespace

DeviceTimeList::DeviceTimeList(QWidget* parent) : QTreeWidget(parent)
{
    setAccessibleName(tr("Time by device and cause"));
    setColumnCount(1 + deviceTimeCauses);
    auto* captions = headerItem();
    captions->setText(0, tr("device"));
    header()->setFont(Theme::words(TextSize::Small)); // room for a caption per cause
    header()->setStretchLastSection(false);
    header()->setSectionResizeMode(0, QHeaderView::Stretch);
    for (int cause = 0; cause < deviceTimeCauses; ++cause) {
        const auto which = static_cast<DeviceTimeCause>(cause);
        captions->setText(1 + cause, QString::fromUtf8(nameOf(which)));
        captions->setToolTip(1 + cause, QStringLiteral("%1: %2").arg(QString::fromUtf8(nameOf(which)),
                                                                     QString::fromUtf8(describe(which))));
        captions->setTextAlignment(1 + cause, Qt::AlignRight | Qt::AlignVCenter);
        header()->setSectionResizeMode(1 + cause, QHeaderView::ResizeToContents); // captions are not cut
    }
    setUniformRowHeights(true);
    setFrameShape(QFrame::NoFrame);
    setIndentation(14);
    // The current row selects its gap or device in the trace.
    connect(this, &QTreeWidget::currentItemChanged, this, [this](QTreeWidgetItem* item) {
        if (!item)
            return;
        if (item->parent()) {
            const std::size_t device = indexOfTopLevelItem(item->parent());
            const std::size_t gap = item->parent()->indexOfChild(item);
            Q_EMIT gapChosen(m_times.devices[device].gaps[gap]);
        } else if (indexOfTopLevelItem(item) < deviceCount()) {
            const DeviceTime& device = m_times.devices[indexOfTopLevelItem(item)];
            Q_EMIT deviceChosen(device.rank, device.device);
        }
    });
}

void DeviceTimeList::setTimes(const DeviceTimes& times, const StoredActivities& trace)
{
    const QSignalBlocker quiet(this);
    const int open = currentItem() && !currentItem()->parent() ? indexOfTopLevelItem(currentItem()) : -1;
    std::vector<bool> expanded;
    for (int i = 0; i < topLevelItemCount(); ++i)
        expanded.push_back(topLevelItem(i)->isExpanded());
    m_times = times;
    clear();
    setColumnHidden(1 + int(indexOf(DeviceTimeCause::NotKnown)),
                    std::all_of(times.devices.begin(), times.devices.end(),
                                [](const DeviceTime& device) { return device.of(DeviceTimeCause::NotKnown) == 0; }));
    const Theme& theme = Theme::of(*this);
    const double whole = double(std::max<Nanoseconds>(1, times.to - times.from));
    // With one device per rank, the rank names the device: the column is narrow.
    std::map<int, int> devicesOf;
    for (const DeviceTime& device : times.devices)
        ++devicesOf[device.rank];
    const bool ranksTell = devicesOf.size() > 1 && devicesOf.size() == times.devices.size();
    for (std::size_t d = 0; d < times.devices.size(); ++d) {
        const DeviceTime& device = times.devices[d];
        auto* row = new QTreeWidgetItem(this);
        // Of "GPU 0 (NVIDIA H100 80GB HBM3), 32 multiprocessors, device 1" the end tells slices of one GPU apart.
        const QString name = QString::fromStdString(device.name);
        const qsizetype slice = name.lastIndexOf(QLatin1String(", device "));
        row->setText(0, ranksTell ? tr("rank %1").arg(device.rank) : slice > 0 ? name.mid(slice + 2) : name);
        row->setToolTip(0, name);
        row->setSizeHint(0, QSize(0, 21));
        if (static_cast<int>(d) == times.straggler) {
            for (int column = 0; column <= deviceTimeCauses; ++column)
                row->setForeground(column, theme.bad);
            row->setToolTip(0, QString::fromStdString(verdict(times)));
        }
        for (int cause = 0; cause < deviceTimeCauses; ++cause) {
            const Nanoseconds part = device.time[cause];
            row->setText(1 + cause, QStringLiteral("%1\u00a0%").arg(100 * double(part) / whole, 0, 'f', 1));
            row->setTextAlignment(1 + cause, Qt::AlignRight | Qt::AlignVCenter);
            row->setFont(1 + cause, Theme::numbers(TextSize::Small));
            row->setToolTip(1 + cause,
                            tr("%1: %2. %3")
                                .arg(QString::fromUtf8(nameOf(static_cast<DeviceTimeCause>(cause))), durationText(part),
                                     QString::fromUtf8(describe(static_cast<DeviceTimeCause>(cause)))));
        }
        for (std::size_t g = 0; g < std::min<std::size_t>(gapsShown, device.gaps.size()); ++g) {
            const DeviceTime::Gap& gap = device.gaps[g];
            auto* child = new QTreeWidgetItem(row);
            const QString next =
                gap.ended ? tr("before %1")
                                .arg(QString::fromStdString(trace.strings[trace.tracks[gap.track].name[gap.slice]])
                                         .simplified())
                          : tr("nothing more comes");
            child->setText(0, tr("%1 idle, %2, %3")
                                  .arg(durationText(gap.end - gap.start), QString::fromUtf8(nameOf(gap.cause)), next));
            child->setToolTip(0, QString::fromUtf8(describe(gap.cause)));
            child->setFirstColumnSpanned(true);
        }
        row->setExpanded(d < expanded.size() && expanded[d]);
    }
    addLinks();
    if (open >= 0 && open < deviceCount())
        setCurrentItem(topLevelItem(open));
}

void DeviceTimeList::addLinks()
{
    std::vector<std::size_t> order(m_times.links.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return m_times.links[a].slowness() > m_times.links[b].slowness();
    });
    order.resize(std::min(linksShown, order.size()));
    for (const std::size_t l : order) {
        const LinkTime& link = m_times.links[l];
        QString name = QString::fromStdString(link.name);
        name.remove(QRegularExpression(QStringLiteral("^the ")));
        auto* row = new QTreeWidgetItem(this);
        row->setText(0, tr("%1: %2 of %3, %4\u00a0× the usual time")
                            .arg(name, QString::number(link.transfers),
                                 durationText(link.time / std::max<std::int64_t>(1, link.transfers)))
                            .arg(link.slowness(), 0, 'f', 2));
        row->setToolTip(
            0, tr("%1\nmoving %2, of which %3 beyond the usual is not hidden by computing; before that the first "
                  "waited %4 for the last")
                   .arg(row->text(0), durationText(link.time), durationText(link.excess), durationText(link.waited)));
        row->setFirstColumnSpanned(true);
        if (static_cast<int>(l) == m_times.slowLink)
            row->setForeground(0, Theme::of(*this).bad);
    }
}

} // namespace pipewright

#include "moc_devicetimelist.cpp"
