// SPDX-License-Identifier: GPL-3.0-or-later
// A file that appears whole or not at all, for what is too large to be made in memory first: it is written under
// another name in the same folder and renamed at the end. What was begun and not kept is removed.
#pragma once

#include <string>

namespace pipewright {

class NewFile {
public:
    /// Throws Error when `path` exists and `overwrite` is false, or its folder cannot be written to.
    NewFile(std::string path, bool overwrite);
    NewFile(const NewFile&) = delete;
    NewFile& operator=(const NewFile&) = delete;
    ~NewFile();

    const std::string& temporary() const { return m_temporary; } ///< exists, empty; to be written
    /// Makes it durable and gives it its name. Throws Error.
    void keep();

private:
    std::string m_path, m_temporary;
    bool m_overwrite;
};

} // namespace pipewright
