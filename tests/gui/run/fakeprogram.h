// SPDX-License-Identifier: GPL-3.0-or-later
// Programs in place of pipewright and Python, so that the test defines what a run does.
#pragma once

#include <QFile>
#include <QTemporaryDir>

namespace pipewright {

inline QString writeScript(const QTemporaryDir& folder, const char* name, const QByteArray& text)
{
    const QString path = folder.filePath(QLatin1String(name));
    QFile file(path);
    if (!file.open(QIODevice::WriteOnly))
        return {};
    file.write("#!/bin/sh\n" + text);
    file.close();
    file.setPermissions(QFile::ReadOwner | QFile::WriteOwner | QFile::ExeOwner);
    return path;
}

/// Answers `devices` with a machine of `memory` bytes, and executes `body` for `run`.
inline QString fakeProgram(const QTemporaryDir& folder, const QByteArray& body,
                           const QByteArray& memory = "1000000000000")
{
    return writeScript(folder, "fake.sh",
                       "if [ \"$1\" = devices ]; then\n"
                       "echo '{\"host\":{\"available\":true,\"name\":\"Test CPU\",\"threads\":4,\"memory_bytes\":"
                           + memory + "},\"cuda\":{\"available\":false,\"reason\":\"no driver here\"}}'\nexit 0\nfi\n"
                           + body);
}

/// A Python that prints its PyTorch's version, or fails like one without PyTorch.
inline QString fakePython(const QTemporaryDir& folder, bool hasTorch)
{
    return writeScript(folder, hasTorch ? "python-with" : "python-without", hasTorch ? "echo 2.4.1\n" : "exit 1\n");
}

} // namespace pipewright
