// SPDX-License-Identifier: GPL-3.0-or-later
// Lists to choose from in dialogs: a combo box of a fixed width, filled with presets.
#pragma once

#include "core/presets/presets.h"

#include <QComboBox>

#include <string>
#include <vector>

namespace pipewright {

QComboBox* makeChoice(const QString& name, int width, QWidget* parent);
/// The presets of a kind in the order in which people look for them: by title, numbers by value.
std::vector<Preset> presetsByTitle(const PresetLibrary& presets, PresetKind kind);
/// Adds the presets of a kind, by title: title, origin as tooltip, and the preset's name as data.
void addPresets(QComboBox* choice, const PresetLibrary& presets, PresetKind kind);
void choose(QComboBox* choice, const QString& data); ///< the first entry where there is no such data
std::string chosenIn(const QComboBox* choice);       ///< the data of its current entry

} // namespace pipewright
