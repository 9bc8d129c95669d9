// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/torch/python.h"

#include "core/base/diagnostic.h"
#include "core/base/findprogram.h"
#include "core/base/formattedtext.h"
#include "core/base/inputfile.h"
#include "core/base/ownmark.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace pipewright {

namespace {

namespace fs = std::filesystem;

const std::string beginningOfName = "pipewright-torch-";

/// The descriptor of the locked folder; below 0: another process has it, another user owns it, or it is no folder. The
/// lock ends with its process.
int lockedFolder(const fs::path& folder)
{
    const int opened = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat facts {};
    if (opened >= 0 && fstat(opened, &facts) == 0 && facts.st_uid == geteuid() && flock(opened, LOCK_EX | LOCK_NB) == 0)
        return opened;
    if (opened >= 0)
        close(opened);
    return -1;
}

/// Removes the folders of killed processes: those with our mark and without a lock.
void removeLeftovers(const fs::path& folder)
{
    std::error_code error;
    std::vector<fs::path> found;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
        if (entry->path().filename().string().starts_with(beginningOfName))
            found.push_back(entry->path());
    for (const fs::path& left : found)
        if (const int lock = lockedFolder(left); lock >= 0) {
            if (left == markedName((folder / beginningOfName).string(), lock))
                fs::remove_all(left, error);
            close(lock);
        }
}

/// The start of code for -c: removes the empty name, that is the current folder, from the import path. Python before
/// 3.11 does not know PYTHONSAFEPATH and puts it first.
const std::string beginning = "import sys\nsys.path[:] = filter(None, sys.path)\n";

/// The entries of PYTHONPATH, without empty ones, which mean the current folder.
std::vector<std::string> ownImportFolders()
{
    const char* own = std::getenv("PYTHONPATH");
    const std::string text = own != nullptr ? own : "";
    std::vector<std::string> folders;
    for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end = std::min(text.find(':', begin), text.size());
        const std::string folder = text.substr(begin, end - begin);
        if (!folder.empty() && folder.front() != '/')
            throw Error("PYTHONPATH",
                        fmt::format("{} is relative, so another folder wherever one stands", inQuotes(folder)),
                        "write an absolute path");
        if (!folder.empty())
            folders.push_back(folder);
        begin = end + 1;
    }
    return folders;
}

} // namespace

RunFolder::RunFolder()
{
    const fs::path folder = fs::temp_directory_path();
    removeLeftovers(folder);
    const std::string beginning = (folder / beginningOfName).string();
    std::string name = beginning + "XXXXXX";
    if (mkdtemp(name.data()) == nullptr)
        throw Error(name, "this folder cannot be made", "is the disk full?");
    m_path = name;
    m_lock = lockedFolder(m_path);
    if (m_lock < 0) {
        std::error_code ignored;
        fs::remove(m_path, ignored);
        throw Error(folder.string(), "no folder in it can be locked", "name another one in TMPDIR");
    }
    m_path = markAsOwn(name, beginning, m_lock); // now that it is locked, no other process takes it for a leftover
}

RunFolder::~RunFolder()
{
    std::error_code ignored;
    fs::remove_all(m_path, ignored);
    close(m_lock);
}

void requireModuleFile(const std::string& module)
{
    const std::string file = module.substr(0, module.rfind(':'));
    std::error_code error;
    if (fs::exists(file, error))
        InputFile{file};
}

ProcessToStart pythonCode(const std::string& python, const std::string& code)
{
    const std::string program = findProgram(python);
    if (program.empty())
        throw Error("--python", fmt::format("there is no program {}", python),
                    "name a Python that has PyTorch: --python /path/to/python3");
    ProcessToStart process;
    process.words = {program, "-c", beginning + code};
    std::vector<std::string> folders = ownImportFolders();
    if (const std::string package = torchPackageDirectory(); !package.empty())
        folders.insert(folders.begin(), package);
    process.environment = {{"PYTHONUNBUFFERED", "1"},
                           {"PYTHONSAFEPATH", "1"}, // also for processes that it starts itself
                           {"PYTHONPATH", joined(folders, ":")}};
    return process;
}

ProcessToStart pythonProcess(const std::string& python, const std::string& module,
                             const std::vector<std::string>& arguments)
{
    ProcessToStart process =
        pythonCode(python, "import runpy\nrunpy.run_module(sys.argv.pop(1), run_name='__main__', alter_sys=True)");
    process.words.push_back(module);
    process.words.insert(process.words.end(), arguments.begin(), arguments.end());
    if (std::getenv("OMP_NUM_THREADS") == nullptr) // as torchrun does
        process.environment.emplace_back("OMP_NUM_THREADS", "1");
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
