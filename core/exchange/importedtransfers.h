// SPDX-License-Identifier: GPL-3.0-or-later
// In which order an imported PyTorch schedule sends and receives, and what that order costs. PyTorch's ranks have one
// stream of communication each (Communication::OneStream), so a receive that is posted early holds up the sends behind
// it.
#pragma once

#include "core/exchange/importedorder.h"
#include "core/exchange/pytorchcomms.h"

#include <array>
#include <optional>
#include <string_view>

namespace pipewright {

enum class TransferSource {
    File,    ///< as the file has them
    Pytorch, ///< where PyTorch puts them, given the computations alone (pytorchlowering.h)
    Own,     ///< where this program puts them
};
inline constexpr std::array<std::string_view, 3> transferSourceNames{"file", "pytorch", "own"};

/// Gives the design one stream per device and the order of its transfers. Adds a note with the length of the step, and
/// of the step in the program's own order or in PyTorch's. `rows`: of the file, checked; `wanted` unset: as the file
/// has them, where it has any, otherwise the own order. Throws Error when the file lacks what is wanted. O(actions log
/// actions).
void orderTransfers(Imported& imported, const PytorchRows& rows, std::optional<TransferSource> wanted,
                    const std::string& source);

} // namespace pipewright
