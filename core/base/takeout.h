// SPDX-License-Identifier: GPL-3.0-or-later
// What of a value is supported is a list of fields, written as code: these are taken out of a copy, and then nothing
// may be left. So a field that somebody adds is refused until its line stands on the list.
#pragma once

namespace pipewright {

/// Puts fields back to their defaults.
template<typename... Fields>
void takeOut(Fields&... fields)
{
    ((fields = Fields{}), ...);
}

} // namespace pipewright
