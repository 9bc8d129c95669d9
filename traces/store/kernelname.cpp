// SPDX-License-Identifier: GPL-3.0-or-later
#include "traces/store/kernelname.h"

#include <cctype>
#include <cstdlib>
#include <cxxabi.h>
#include <memory>
#include <string_view>

namespace pipewright {

namespace {

/// nvcc names an unnamed namespace after its file: "layernorm_cu" of "_GLOBAL__N__ac75c795_12_layernorm_cu_35df7e14".
/// Empty: it did not.
std::string_view fileOf(std::string_view mangled)
{
    constexpr std::string_view mark = "_GLOBAL__N__", suffix = "_cu_";
    const std::size_t begin = mangled.find(mark);
    if (begin == mangled.npos)
        return {};
    std::string_view rest = mangled.substr(begin + mark.size());
    for (int part = 0; part < 2; ++part) { // a checksum of the path, and how long the file's name is
        const std::size_t end = rest.find('_');
        if (end == rest.npos || end == 0 || std::isxdigit(static_cast<unsigned char>(rest[0])) == 0)
            return {};
        rest.remove_prefix(end + 1);
    }
    const std::size_t end = rest.find(suffix);
    return end == rest.npos ? std::string_view() : rest.substr(0, end + suffix.size() - 1);
}

} // namespace

std::string demangled(const std::string& name)
{
    if (!name.starts_with("_Z")) // else "i" would be int
        return name;
    int status = 0;
    const std::unique_ptr<char, void (*)(void*)> text(abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status),
                                                      std::free);
    if (status != 0 || !text)
        return name;
    std::string readable = text.get();
    constexpr std::string_view unnamed = "(anonymous namespace)";
    const std::string_view file = fileOf(name);
    if (const std::size_t at = readable.find(unnamed); !file.empty() && at != readable.npos)
        readable.replace(at, unnamed.size(), file);
    return readable;
}

} // namespace pipewright
