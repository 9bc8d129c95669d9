// SPDX-License-Identifier: GPL-3.0-or-later
// Finds NVIDIA's libraries: in folders that the user names, where the loader looks, in the folders of the toolkit and
// the system, and in the packages of the active Python, where PyTorch installs them. Only absolute folders count: a
// library is code, and a file planted in the current folder must not run.
#pragma once

#include <string>
#include <vector>

namespace pipewright {

/// The file's path in the first folder that has it; empty: not found. `wheel` is its folder in Python's "nvidia".
std::string whereLibraryIs(const std::string& file, const std::string& wheel, const std::vector<std::string>& folders);

bool isAbsolute(const std::string& path);

/// The path of a 64-bit library in the loader's cache; empty: it has none, or its format is unknown.
std::string inLoaderCache(const std::string& file, const std::string& cache = "/etc/ld.so.cache");

} // namespace pipewright
