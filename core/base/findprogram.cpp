// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/findprogram.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sys/stat.h>
#include <unistd.h>

namespace pipewright {

namespace {

bool isExecutableFile(const std::string& path)
{
    struct stat facts {};
    return stat(path.c_str(), &facts) == 0 && S_ISREG(facts.st_mode) && access(path.c_str(), X_OK) == 0;
}

} // namespace

std::string findProgram(const std::string& program)
{
    if (program.empty())
        return {};
    if (program.find('/') != std::string::npos) {
        std::error_code error;
        const std::string path = std::filesystem::absolute(program, error).string();
        return !error && isExecutableFile(path) ? path : std::string();
    }
    const char* given = std::getenv("PATH");
    const std::string folders = given != nullptr ? given : "/usr/local/bin:/usr/bin:/bin";
    for (std::size_t begin = 0; begin < folders.size();) {
        const std::size_t end = std::min(folders.find(':', begin), folders.size());
        const std::string candidate = folders.substr(begin, end - begin) + "/" + program;
        if (folders[begin] == '/' && isExecutableFile(candidate))
            return candidate;
        begin = end + 1;
    }
    return {};
}

std::vector<std::string> ownCommand()
{
    std::ifstream file("/proc/self/cmdline", std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    std::vector<std::string> words;
    for (std::size_t begin = 0; begin < text.size(); begin = text.find('\0', begin) + 1)
        words.emplace_back(text.c_str() + begin);
    std::error_code error;
    const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
    if (!words.empty() && !error)
        words.front() = self.string();
    return words;
}

} // namespace pipewright
