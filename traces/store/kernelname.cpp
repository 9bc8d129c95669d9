// SPDX-License-Identifier: GPL-3.0-or-later
#include "traces/store/kernelname.h"

#include <cstdlib>
#include <cxxabi.h>
#include <memory>

namespace pipewright {

std::string demangled(const std::string& name)
{
    if (!name.starts_with("_Z")) // else "i" would be int
        return name;
    int status = 0;
    const std::unique_ptr<char, void (*)(void*)> text(abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status),
                                                      std::free);
    return status == 0 && text ? text.get() : name;
}

} // namespace pipewright
