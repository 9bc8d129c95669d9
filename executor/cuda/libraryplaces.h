// SPDX-License-Identifier: GPL-3.0-or-later
// Where NVIDIA's libraries lie on a machine: in folders that are named, where the loader looks, in the toolkit's and
// the system's own folders, and among the packages of the active Python, which PyTorch brings. Only absolute folders
// count: a library is code, and a file planted in the current folder must not run.
#pragma once

#include <string>
#include <vector>

namespace pipewright {

/// The file's path in the first place that has it; empty: none has. `wheel` is its folder in Python's "nvidia".
std::string whereLibraryIs(const std::string& file, const std::string& wheel, const std::vector<std::string>& folders);

bool isAbsolute(const std::string& path);

/// The path that the loader's cache has for a library of 64 bits; empty: it has none, or is not of a known form.
std::string inLoaderCache(const std::string& file, const std::string& cache = "/etc/ld.so.cache");

} // namespace pipewright
