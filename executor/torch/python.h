// SPDX-License-Identifier: GPL-3.0-or-later
// How Python processes of the package are started: the interpreter, the package on its path, a folder for what is
// handed over.
#pragma once

#include "executor/torch/rankprocesses.h"

#include <filesystem>
#include <string>

namespace pipewright {

/// A folder of this run alone; gone with it. That of a run which was killed goes when the next one is made.
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

/// Throws Error when the file of a person's module, FILE.py:NAME, is there and is no regular file; the interpreter says
/// what else is wrong with it.
void requireModuleFile(const std::string& module);

/// `python -c code`, which imports nothing from the folder one happens to stand in: a file planted there does not run.
/// Throws Error when there is no such interpreter, and for a PYTHONPATH that names folders relative to the current one.
ProcessToStart pythonCode(const std::string& python, const std::string& code);

/// As `python -m module arguments…` and with that care, reporting to descriptor 3. Throws Error likewise.
ProcessToStart pythonProcess(const std::string& python, const std::string& module,
                             const std::vector<std::string>& arguments);

/// The folder to put on PYTHONPATH: beside the installed program, else in the source tree; empty when there is none,
/// and the package must have been installed with pip.
std::string torchPackageDirectory();

} // namespace pipewright
