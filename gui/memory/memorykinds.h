// SPDX-License-Identifier: GPL-3.0-or-later
// The kinds of memory that bars are stacked of, from left to right, with their colours.
#pragma once

#include "core/predict/stagememory.h"

#include <QColor>
#include <QString>

#include <span>
#include <vector>

namespace pipewright {

struct Theme;

struct MemoryKind {
    QString name;
    QColor color;
    Bytes DeviceMemory::*bytes;
};

/// All that the devices hold; what a framework keeps and what is gathered only where one of them has it.
std::vector<MemoryKind> memoryKinds(const Theme& theme, std::span<const DeviceMemory> devices);

} // namespace pipewright
