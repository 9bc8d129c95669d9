// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/widgets/choices.h"

#include <QCollator>

#include <algorithm>

namespace pipewright {

QComboBox* makeChoice(const QString& name, int width, QWidget* parent)
{
    constexpr int mostVisible = 24;
    auto* choice = new QComboBox(parent);
    choice->setAccessibleName(name);
    choice->setFixedWidth(width);
    choice->setMaxVisibleItems(mostVisible);
    return choice;
}

std::vector<Preset> presetsByTitle(const PresetLibrary& presets, PresetKind kind)
{
    std::vector<Preset> all = presets.list(kind);
    QCollator collator(QLocale::c());
    collator.setNumericMode(true);
    collator.setCaseSensitivity(Qt::CaseInsensitive);
    std::stable_sort(all.begin(), all.end(), [&](const Preset& a, const Preset& b) {
        return collator.compare(QString::fromStdString(a.title), QString::fromStdString(b.title)) < 0;
    });
    return all;
}

void addPresets(QComboBox* choice, const PresetLibrary& presets, PresetKind kind)
{
    for (const Preset& preset : presetsByTitle(presets, kind)) {
        choice->addItem(QString::fromStdString(preset.title), QString::fromStdString(preset.name));
        choice->setItemData(choice->count() - 1, QString::fromStdString(preset.origin), Qt::ToolTipRole);
    }
}

void choose(QComboBox* choice, const QString& data)
{
    choice->setCurrentIndex(std::max(0, choice->findData(data)));
}

std::string chosenIn(const QComboBox* choice)
{
    return choice->currentData().toString().toStdString();
}

} // namespace pipewright
