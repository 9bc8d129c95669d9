// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/timeline/patternpaste.h"

#include "gui/timeline/timelineparts.h"
#include "gui/timeline/timelineview.h"

#include <QAction>
#include <QClipboard>
#include <QGuiApplication>
#include <QMenu>
#include <QMimeData>

#include <algorithm>

namespace pipewright {
namespace {

struct CopiedPattern : QMimeData {
    Pattern pattern;
};

/// Null when something else was copied since, or nothing.
const CopiedPattern* copiedPattern()
{
    return dynamic_cast<const CopiedPattern*>(QGuiApplication::clipboard()->mimeData());
}

} // namespace

void PatternPaste::copy()
{
    const Design& design = d.document.design();
    const std::vector<Block> blocks = d.selection.blocks();
    int device = -1;
    std::vector<std::uint32_t> positions;
    for (const Block& block : blocks) {
        const Position at = placeOf(design.schedule, d.shown.present(), block);
        if (device >= 0 && at.device >= 0 && at.device != device) {
            Q_EMIT m_view.editRefused(tr("An order is of one device: %1 is on %2, and %3 on %4")
                                          .arg(blockText(blocks.front()), deviceLabel(design, device), blockText(block),
                                               deviceLabel(design, at.device)));
            return;
        }
        if (at.device < 0)
            continue; // only recorded
        device = at.device;
        positions.push_back(static_cast<std::uint32_t>(at.index));
    }
    if (positions.size() < 2) {
        Q_EMIT m_view.editRefused(tr("Select two blocks or more of one device to copy their order"));
        return;
    }
    std::sort(positions.begin(), positions.end());
    QStringList names;
    for (const std::uint32_t position : positions)
        names << blockText(design.schedule.order[device][position]);
    auto* copied = new CopiedPattern; // which the clipboard owns
    copied->pattern = patternOf(design.schedule, device, positions);
    copied->setText(names.join(QLatin1Char(' ')));
    QGuiApplication::clipboard()->setMimeData(copied);
    Q_EMIT m_view.hovered(tr("Copied the order of %n blocks of %1: select a block of another device, or choose its "
                             "lane, and paste it there (Ctrl+V)",
                             nullptr, static_cast<int>(positions.size()))
                              .arg(deviceLabel(design, device)));
}

std::optional<PastePattern> PatternPaste::request(QString* whyNot) const
{
    const Design& design = d.document.design();
    const CopiedPattern* const copied = copiedPattern();
    if (!copied) {
        *whyNot = tr("No order was copied: select blocks of one device, and copy them (Ctrl+C)");
        return std::nullopt;
    }
    PastePattern paste{copied->pattern, {}};
    if (d.lanes.pressed() >= 0)
        paste.devices.push_back(d.lanes.pressed());
    else
        for (const Block& block : d.selection.blocks())
            if (const int device = placeOf(design.schedule, d.shown.present(), block).device; device >= 0)
                paste.devices.push_back(device);
    std::sort(paste.devices.begin(), paste.devices.end());
    paste.devices.erase(std::unique(paste.devices.begin(), paste.devices.end()), paste.devices.end());
    if (paste.devices.empty()) {
        *whyNot = tr("Select a block of the device that is to have the copied order, or choose its lane");
        return std::nullopt;
    }
    const auto stays = [&](int device) {
        const PatternOnDevice there = patternOn(design.schedule, paste.pattern, device);
        return there.missing.size() < paste.pattern.blocks.size() && !there.changesOrder();
    };
    if (std::all_of(paste.devices.begin(), paste.devices.end(), stays)) {
        *whyNot = paste.devices.size() > 1
                      ? tr("These devices have the copied order already")
                      : tr("%1 has the copied order already: select a block of another device, or choose its lane")
                            .arg(deviceLabel(design, paste.devices.front()));
        return std::nullopt;
    }
    return paste;
}

QString PatternPaste::titleOf(const PastePattern& paste) const
{
    const Design& design = d.document.design();
    QStringList devices, lacking;
    for (const int device : paste.devices) {
        devices << deviceLabel(design, device);
        const std::vector<PatternBlock> missing = patternOn(design.schedule, paste.pattern, device).missing;
        if (missing.empty())
            continue;
        const QString first =
            tr("%1 of microbatch %2").arg(QLatin1Char(letter(missing.front().op))).arg(missing.front().microbatch);
        lacking << (missing.size() == 1
                        ? tr("%1 has no %2").arg(devices.back(), first)
                        : tr("%1 has no %2, nor %n others", nullptr, static_cast<int>(missing.size()) - 1)
                              .arg(devices.back(), first));
    }
    const QString title = tr("Order of %n blocks on %1", nullptr, static_cast<int>(paste.pattern.blocks.size()))
                              .arg(devices.join(tr(", ")));
    return lacking.empty() ? title : tr("%1; left out: %2").arg(title, lacking.join(tr("; ")));
}

void PatternPaste::paste()
{
    if (d.hand.left)
        return;
    QString whyNot;
    const std::optional<PastePattern> paste = request(&whyNot);
    if (!paste) {
        Q_EMIT m_view.editRefused(whyNot);
        return;
    }
    const QString title = titleOf(*paste);
    const std::shared_ptr<const Design> before = d.document.sharedDesign();
    d.document.applyLater({*paste});
    if (d.document.isWorking() || d.document.sharedDesign() != before)
        Q_EMIT m_view.hovered(title);
}

void PatternPaste::previewIn(QMenu& menu)
{
    const QAction* const entry = m_view.action(QStringLiteral("pasteOrder"));
    QObject::connect(&menu, &QMenu::hovered, &m_view,
                     [this, entry](const QAction* action) { action == entry ? preview() : endPreview(); });
    QObject::connect(&menu, &QMenu::aboutToHide, &m_view, [this] { endPreview(); });
}

void PatternPaste::preview()
{
    QString whyNot;
    const std::optional<PastePattern> paste = request(&whyNot);
    if (m_previews || !paste)
        return;
    m_previews = true;
    d.overlay.setCursor(d.lanes.places().lane(paste->devices.front()).topRight()); // the menu hides less there
    d.drop.holdPaste(*paste, titleOf(*paste));
    d.overlay.update();
}

void PatternPaste::endPreview()
{
    if (!std::exchange(m_previews, false))
        return;
    d.drop.clear();
    d.overlay.update();
}

} // namespace pipewright
