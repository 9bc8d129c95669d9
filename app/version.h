// SPDX-License-Identifier: GPL-3.0-or-later
// Which version of the program this is, and of which commit it was built.
#pragma once

#include <string>
#include <string_view>

namespace pipewright::app {

/// "0.1.0", from executor/torch/pyproject.toml, the one place where it stands.
std::string_view versionNumber();

/// What --version prints: "pipewright 0.1.0 (commit 0123456789ab)", with ", changed" behind the commit where not all of
/// its files were as committed, without the bracket where it was not built of a checkout, and with ", without Qt" at
/// the end of a program that has no designer. app/run.sh reads it.
std::string versionText();

} // namespace pipewright::app
