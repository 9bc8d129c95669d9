// SPDX-License-Identifier: GPL-3.0-or-later
#include "traces/analysis/causetext.h"

namespace pipewright {

std::string shortText(const Cause& cause, const std::function<std::string(int)>& nameOfDevice)
{
    const std::string device = nameOfDevice(cause.device);
    const std::string link = cause.peer >= 0 ? device + " → " + nameOfDevice(cause.peer) : device;
    const bool faster = cause.contribution < 0 || (cause.contribution == 0 && cause.excess < 0);
    switch (cause.kind) {
    case Cause::Kind::SlowerBlocks: return (faster ? "faster blocks on " : "slower blocks on ") + device;
    case Cause::Kind::Transfer: return (faster ? "faster transfers " : "slower transfers ") + link;
    case Cause::Kind::Contention: return "busy link " + link;
    case Cause::Kind::HostGap: return "gaps of the host on " + device;
    case Cause::Kind::MemoryWait: return "waits for memory on " + device;
    }
    return {};
}

} // namespace pipewright
