// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/runtime/faultspec.h"

#include "core/base/diagnostic.h"

#include <charconv>
#include <string_view>
#include <vector>

namespace pipewright {

namespace {

struct Named {
    std::string_view name;
    Fault::Kind kind;
};
constexpr Named kinds[] = {{"dies", Fault::Kind::Dies},
                           {"stalls", Fault::Kind::Stalls},
                           {"slows", Fault::Kind::Slows},
                           {"throws", Fault::Kind::Throws},
                           {"out-of-memory", Fault::Kind::OutOfMemory},
                           {"link-stalls", Fault::Kind::LinkStalls},
                           {"killed", Fault::Kind::Killed}};

std::vector<std::string> partsOf(const std::string& text)
{
    std::vector<std::string> parts;
    for (std::size_t begin = 0; begin <= text.size();) {
        const std::size_t end = std::min(text.find(':', begin), text.size());
        parts.push_back(text.substr(begin, end - begin));
        begin = end + 1;
    }
    return parts;
}

bool readNumber(const std::string& text, int& number)
{
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, number);
    return error == std::errc() && stop == end && number >= 0;
}

} // namespace

Fault parseFault(const std::string& text, const std::string& where)
{
    const std::vector<std::string> parts = partsOf(text);
    Fault fault;
    int instruction = 0;
    const Named* found = nullptr;
    for (const Named& named : kinds)
        if (parts.front() == named.name)
            found = &named;
    const std::size_t wanted = found && found->kind == Fault::Kind::Slows ? 5 : 4;
    if (!found || parts.size() != wanted || !readNumber(parts[1], fault.device) || !readNumber(parts[2], fault.step)
        || !readNumber(parts[3], instruction))
        throw Error(where, "\"" + text + "\" is no fault",
                    "write KIND:DEVICE:STEP:INSTRUCTION with KIND one of dies, stalls, throws, out-of-memory, "
                    "link-stalls, killed, or slows:DEVICE:STEP:INSTRUCTION:DELAY");
    fault.kind = found->kind;
    fault.instruction = static_cast<std::uint32_t>(instruction);
    if (wanted == 5)
        fault.delay = parseDuration(parts[4], where);
    return fault;
}

void requirePlace(const Fault& fault, const Program& program, int steps, const std::string& where)
{
    const auto require = [&](const char* what, std::size_t number, std::size_t count) {
        if (number >= count)
            throw Error(where, "there is no " + std::string(what) + " " + std::to_string(number),
                        "they count from 0 to " + std::to_string(count - 1));
    };
    const auto device = static_cast<std::size_t>(fault.device);
    require("device", device, program.devices.size());
    require("step", static_cast<std::size_t>(fault.step), static_cast<std::size_t>(steps));
    require(("instruction of device " + std::to_string(device)).c_str(), fault.instruction,
            program.devices[device].instructions.size());
}

} // namespace pipewright
