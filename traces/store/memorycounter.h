// SPDX-License-Identifier: GPL-3.0-or-later
// The counters that importers make of the allocators' reports: bytes, on the device or the host.
#pragma once

namespace pipewright {

inline constexpr const char* allocatedByPytorch = "allocated by PyTorch (bytes)"; ///< of tensors
inline constexpr const char* reservedByPytorch = "reserved by PyTorch (bytes)";   ///< of the device, kept for tensors

} // namespace pipewright
