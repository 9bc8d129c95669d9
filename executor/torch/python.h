// SPDX-License-Identifier: GPL-3.0-or-later
// Starts Python processes with the package on their path, and gives a run a folder for the files that it passes to
// them.
#pragma once

#include "executor/torch/rankprocesses.h"

#include <filesystem>
#include <string>

namespace pipewright {

/// A folder for this run alone, removed at its end. Folders of killed runs are removed when the next one is made.
class RunFolder {
public:
    RunFolder(); ///< throws Error
    ~RunFolder();
    RunFolder(const RunFolder&) = delete;
    RunFolder& operator=(const RunFolder&) = delete;
    std::string file(const char* name) const { return (m_path / name).string(); }

private:
    std::filesystem::path m_path;
    int m_lock = -1; ///< the folder, locked for as long as this process lives
};

/// Throws Error when the file of the user's module, FILE.py:NAME, exists and is not a regular file; the interpreter
/// reports all other faults.
void requireModuleFile(const std::string& module);

/// `python -c code`, which imports nothing from the current folder, so that a file planted there does not run. Throws
/// Error when there is no such interpreter, and for a PYTHONPATH with folders relative to the current one.
ProcessToStart pythonCode(const std::string& python, const std::string& code);

/// As `python -m module arguments…`, just as safe, reporting to descriptor 3. Throws Error likewise.
ProcessToStart pythonProcess(const std::string& python, const std::string& module,
                             const std::vector<std::string>& arguments);

/// The folder to put on PYTHONPATH: beside the installed program, else in the source tree. Empty when neither exists;
/// then the package must have been installed with pip.
std::string torchPackageDirectory();

} // namespace pipewright
