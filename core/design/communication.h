// SPDX-License-Identifier: GPL-3.0-or-later
// How the sends and receives of a device run beside its computations and beside each other: a cost of the machine and
// its library, as bandwidth is. In every kind, values of one pair of devices arrive in the order in which they are
// sent.
#pragma once

#include <cstdint>
#include <string_view>

namespace pipewright {

enum class Communication : std::uint8_t {
    /// Sends and receives run beside compute. A transfer begins as soon as its value is there; transfers of one device
    /// do not wait for each other, except on a shared bus.
    Overlapped,
    /// Every device has one stream of communication, which runs its sends and receives one after the other in the order
    /// of its list. A send and its receive begin together, when both streams have come to them and the value is there.
    /// Compute waits only for the receives that it needs. So does NCCL under PyTorch's pipeline schedules.
    OneStream,
    /// One stream for all: a device waits for each send and receive before its next instruction.
    Blocking,
};

/// As in design files and on the command line; empty behind the last one.
constexpr std::string_view nameOf(Communication communication)
{
    switch (communication) {
    case Communication::Overlapped: return "overlapped";
    case Communication::OneStream: return "one-stream";
    case Communication::Blocking: return "blocking";
    }
    return {};
}

} // namespace pipewright
