// SPDX-License-Identifier: GPL-3.0-or-later
// The model window's edits of the cluster: values of devices and links, the GPUs that devices run on, separate links
// for pairs of devices.
#include "core/base/rates.h"
#include "core/design/redesign.h"
#include "core/presets/clusterjson.h"
#include "gui/model/modelwindow.h"
#include "gui/widgets/valuetable.h"
#include "gui/widgets/words.h"

#include <QComboBox>

#include <algorithm>

namespace pipewright {

namespace {

double parseShare(const QString& text)
{
    QString number = text;
    const bool percent = number.contains(QLatin1Char('%'));
    number.remove(QLatin1Char('%'));
    bool ok = false;
    const double value = withDecimalPoint(number).trimmed().toDouble(&ok) / (percent ? 100 : 1);
    if (!ok || !(value > 0) || value > 1)
        throw Error("efficiency", "\"" + text.toStdString() + "\" is no share of the peak rate",
                    "write for example 50 %");
    return value;
}

int parseNumber(const QString& text, const std::string& where, int low, int high)
{
    bool ok = false;
    const int value = text.toInt(&ok);
    if (!ok || value < low || value > high)
        throw Error(where, "\"" + text.toStdString() + "\" is out of range",
                    "a whole number between " + std::to_string(low) + " and " + std::to_string(high));
    return value;
}

} // namespace

void ModelWindow::setGpu(int device, const QString& text)
{
    const std::vector<GpuShare>& now = m_document.design().cluster.gpus;
    const QString what = text.isEmpty() ? tr("Leave open which GPUs the devices run on")
                         : now.empty()  ? tr("Run every device on GPU %1 of the machine").arg(text)
                                        : tr("Run device %1 on GPU %2 of the machine").arg(device).arg(text);
    commit(what, [&] {
        Cluster cluster = m_document.design().cluster;
        if (text.isEmpty()) {
            cluster.gpus.clear();
        } else {
            const int gpu = parseNumber(text, "GPU of device " + std::to_string(device), 0, highestGpu);
            if (now.empty())
                cluster.gpus.assign(cluster.devices.size(), GpuShare{gpu, 0});
            cluster.gpus[device].gpu = gpu;
        }
        return withCluster(m_document.design(), std::move(cluster));
    });
}

void ModelWindow::setMultiprocessors(int device, const QString& text)
{
    const std::vector<GpuShare>& now = m_document.design().cluster.gpus;
    const QString what = text.isEmpty() ? tr("Run device %1 on a whole GPU").arg(device)
                         : now.empty()  ? tr("Run every device on %1 multiprocessors of GPU 0").arg(text)
                                        : tr("Run device %1 on %2 multiprocessors").arg(device).arg(text);
    commit(what, [&] {
        Cluster cluster = m_document.design().cluster;
        const int slice = text.isEmpty() ? 0
                                         : parseNumber(text, "multiprocessors of device " + std::to_string(device), 1,
                                                       mostMultiprocessors);
        if (now.empty() && slice > 0)
            cluster.gpus.assign(cluster.devices.size(), GpuShare{0, slice});
        else if (!now.empty())
            cluster.gpus[device].multiprocessors = slice;
        return withCluster(m_document.design(), std::move(cluster));
    });
}

void ModelWindow::setDeviceValue(int device, int column, const QString& text)
{
    if (column == gpuColumn)
        return setGpu(device, text);
    if (column == multiprocessorsColumn)
        return setMultiprocessors(device, text);
    const QString label = deviceLabel(m_document.design(), device);
    commit(tr("Set %1 of %2 to %3").arg(m_devices->horizontalHeaderItem(column)->text(), label, text), [&] {
        Cluster cluster = m_document.design().cluster;
        DeviceSpec& spec = cluster.devices[device];
        const std::string value = typedQuantity(text);
        switch (column) {
        case 1: spec.name = text.toStdString(); break;
        case 2: spec.memory = text.isEmpty() ? 0 : parseSize(value, "memory"); break;
        case 3: spec.peakOf(productsOf(m_document.design())) = parseFlops(value, "peak rate"); break;
        case 4: spec.efficiency = parseShare(text); break;
        case 5: spec.memoryBandwidth = parseBandwidth(value, "memory bandwidth"); break;
        case halfRateColumn:
            spec.halfRateWidth = text.isEmpty() ? 0 : parseNumber(text, "half-rate width", 0, 1'000'000);
            break;
        default: break;
        }
        if (column > 2) // a rate that somebody types counts in place of those that were measured
            spec.rates = nullptr;
        return withCluster(m_document.design(), std::move(cluster));
    });
}

void ModelWindow::setLinkValue(int row, int column, const QString& text)
{
    commit(tr("Set %1 of the link %2 to %3")
               .arg(m_links->horizontalHeaderItem(column)->text(), m_links->text(row, 0), text),
           [&] {
               Cluster cluster = m_document.design().cluster;
               LinkSpec& link = row == 0 ? cluster.link : std::next(cluster.linkOfPair.begin(), row - 1)->second;
               if (column == 1)
                   link.name = text.toStdString();
               else if (column == 2)
                   link.latency = parseDuration(typedQuantity(text), "latency");
               else
                   link.bandwidth = text.isEmpty() ? 0 : parseBandwidth(typedQuantity(text), "bandwidth");
               return withCluster(m_document.design(), std::move(cluster));
           });
}

void ModelWindow::addLink(int from, int to)
{
    const int devices = static_cast<int>(m_document.design().cluster.devices.size());
    commit(tr("Add a link from %1 to %2")
               .arg(deviceLabel(m_document.design(), from), deviceLabel(m_document.design(), to)),
           [&] {
               if (from == to || std::max(from, to) >= devices)
                   throw Error("link",
                               "there is no pair of devices " + std::to_string(from) + " and " + std::to_string(to),
                               "two different ones of " + std::to_string(devices));
               Cluster cluster = m_document.design().cluster;
               if (!cluster.linkOfPair.emplace(std::pair(from, to), cluster.link).second)
                   throw Error("link", "this pair has a link of its own already", "edit it in the table");
               return withCluster(m_document.design(), std::move(cluster));
           });
}

void ModelWindow::setCommunication(Communication communication)
{
    commit(tr("Run %1").arg(m_communication->itemText(static_cast<int>(communication))), [&] {
        Design design = m_document.design();
        design.costs.communication = communication;
        return design;
    });
}

void ModelWindow::removeLink()
{
    const int row = m_links->currentRow();
    if (row < 1 || row >= m_links->rowCount())
        return;
    commit(tr("Remove the link %1").arg(m_links->text(row, 0)), [&] {
        Cluster cluster = m_document.design().cluster;
        cluster.linkOfPair.erase(std::next(cluster.linkOfPair.begin(), row - 1));
        return withCluster(m_document.design(), std::move(cluster));
    });
}

} // namespace pipewright
