// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/torch/python.h"

#include "core/base/diagnostic.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include <unistd.h>

namespace pipewright {

namespace {

namespace fs = std::filesystem;

std::string findOnPath(const std::string& program)
{
    if (program.find('/') != std::string::npos)
        return access(program.c_str(), X_OK) == 0 ? program : std::string();
    const char* path = std::getenv("PATH");
    const std::string folders = path != nullptr ? path : "";
    for (std::size_t begin = 0; begin <= folders.size();) {
        const std::size_t end = std::min(folders.find(':', begin), folders.size());
        const std::string candidate = folders.substr(begin, end - begin) + "/" + program;
        if (end > begin && access(candidate.c_str(), X_OK) == 0)
            return candidate;
        begin = end + 1;
    }
    return {};
}

} // namespace

RunFolder::RunFolder()
{
    std::string name = (fs::temp_directory_path() / "pipewright-torch-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr)
        throw Error(name, "this folder cannot be made", "is the disk full?");
    m_path = name;
}

RunFolder::~RunFolder()
{
    std::error_code ignored;
    fs::remove_all(m_path, ignored);
}

ProcessToStart pythonProcess(const std::string& python, const std::string& module,
                             const std::vector<std::string>& arguments)
{
    const std::string program = findOnPath(python);
    if (program.empty())
        throw Error("--python", fmt::format("there is no program {}", python),
                    "name a Python that has PyTorch: --python /path/to/python3");
    ProcessToStart process;
    process.words = {program, "-m", module};
    process.words.insert(process.words.end(), arguments.begin(), arguments.end());
    process.environment = {{"PYTHONUNBUFFERED", "1"}};
    if (std::getenv("OMP_NUM_THREADS") == nullptr) // as torchrun does
        process.environment.emplace_back("OMP_NUM_THREADS", "1");
    if (const std::string package = torchPackageDirectory(); !package.empty()) {
        const char* own = std::getenv("PYTHONPATH");
        process.environment.emplace_back("PYTHONPATH", own && *own ? package + ":" + own : package);
    }
    return process;
}

std::string torchPackageDirectory()
{
    std::vector<fs::path> candidates;
    std::error_code error;
    if (const fs::path program = fs::read_symlink("/proc/self/exe", error); !error)
        candidates.push_back((program.parent_path() / "../share/pipewright/python").lexically_normal());
    candidates.emplace_back(PIPEWRIGHT_TORCH_DIR);
    for (const fs::path& candidate : candidates)
        if (fs::is_directory(candidate / "pipewright", error))
            return candidate.string();
    return {};
}

} // namespace pipewright
