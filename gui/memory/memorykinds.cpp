// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/memory/memorykinds.h"

#include "gui/widgets/theme.h"

#include <QObject>

#include <algorithm>

namespace pipewright {

std::vector<MemoryKind> memoryKinds(const Theme& theme, std::span<const DeviceMemory> devices)
{
    std::vector<MemoryKind> kinds{{QObject::tr("weights"), theme.persistent, &DeviceMemory::weights},
                                  {QObject::tr("gradients"), theme.fill(Op::W), &DeviceMemory::gradients},
                                  {QObject::tr("optimizer"), theme.fill(Op::U), &DeviceMemory::optimizer},
                                  {QObject::tr("framework"), theme.dim, &DeviceMemory::framework},
                                  {QObject::tr("gathered"), theme.fill(Op::R), &DeviceMemory::gathered},
                                  {QObject::tr("activations"), theme.fill(Op::F), &DeviceMemory::activations},
                                  {QObject::tr("buffers"), theme.fill(Op::I), &DeviceMemory::buffers},
                                  {QObject::tr("workspace"), theme.waiting, &DeviceMemory::workspace}};
    std::erase_if(kinds, [devices](const MemoryKind& kind) {
        return (kind.bytes == &DeviceMemory::framework || kind.bytes == &DeviceMemory::gathered)
               && std::ranges::all_of(devices, [&](const DeviceMemory& device) { return device.*kind.bytes == 0; });
    });
    return kinds;
}

} // namespace pipewright
