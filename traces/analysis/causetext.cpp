// SPDX-License-Identifier: GPL-3.0-or-later
#include "traces/analysis/causetext.h"

namespace pipewright {

std::string shortText(const Cause& cause, const std::function<std::string(int)>& nameOfDevice)
{
    if (cause.kind == Cause::Kind::CoreWait)
        return describe(cause);
    const std::string device = nameOfDevice(cause.device);
    const std::string link = cause.peer >= 0 ? device + " → " + nameOfDevice(cause.peer) : device;
    const bool faster = cause.faster;
    switch (cause.kind) {
    case Cause::Kind::SlowerBlocks: return (faster ? "faster blocks on " : "slower blocks on ") + device;
    case Cause::Kind::Transfer: return (faster ? "faster transfers " : "slower transfers ") + link;
    case Cause::Kind::Contention: return "busy link " + link;
    case Cause::Kind::HostGap: return (faster ? "shorter gaps of the host on " : "gaps of the host on ") + device;
    case Cause::Kind::MemoryWait: return "waits for memory on " + device;
    case Cause::Kind::CoreWait: break;
    }
    return {};
}

} // namespace pipewright
