// SPDX-License-Identifier: GPL-3.0-or-later
// The one way to find a program that is to be started. What PATH says of the folder one stands in is passed over: an
// empty or relative entry would run anybody's program of that name there.
#pragma once

#include <string>
#include <vector>

namespace pipewright {

/// The absolute path of `program`: it is itself a path where it holds a '/', else the first executable file of that
/// name in an absolute folder of PATH (the system's default where PATH is not set). Empty when there is none.
std::string findProgram(const std::string& program);

/// The words that this process was started with; the first is the program's own absolute path.
std::vector<std::string> ownCommand();

} // namespace pipewright
