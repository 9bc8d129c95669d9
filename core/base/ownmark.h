// SPDX-License-Identifier: GPL-3.0-or-later
// How temporary files and folders are known as this program's own when another process comes to clean up after a killed
// one: their name ends with the number that the file system gave them (inode). Neither a file of the user's that is
// called so nor a copy of ours bears its own number, so neither is ever removed.
#pragma once

#include <string>

namespace pipewright {

/// The name with that mark: `beginning`, and the number of the open file or folder.
std::string markedName(const std::string& beginning, int descriptor);

/// Gives the file or folder at `path` this name with its mark, if no other has it; returns the name it then has.
std::string markAsOwn(const std::string& path, const std::string& beginning, int descriptor);

} // namespace pipewright
