// SPDX-License-Identifier: GPL-3.0-or-later
// A program in place of Python that writes the reports of the ranks, so that the launcher is tested without PyTorch.
// `body` is shell; it has $RANK, say LINE, and the folder of the test as $HERE.
#pragma once

#include <QFile>
#include <QTemporaryDir>

#include <cerrno>
#include <csignal>
#include <string>

namespace pipewright::test {

class FakePython {
public:
    explicit FakePython(const std::string& body)
    {
        QFile file(m_folder.filePath("python"));
        if (!file.open(QIODevice::WriteOnly))
            return;
        file.write(QByteArray::fromStdString("#!/bin/sh\nHERE='" + m_folder.path().toStdString()
                                             + "'\nJOB=$4\nsay() { echo \"$1\" >&3; }\n" + body));
        file.setPermissions(QFile::ReadOwner | QFile::WriteOwner | QFile::ExeOwner);
    }

    std::string program() const { return path("python"); }
    std::string path(const char* name) const { return m_folder.filePath(name).toStdString(); }
    bool wrote(const char* name) const { return QFile::exists(m_folder.filePath(name)); }

    /// The process whose number the script wrote into a file is gone.
    bool isGone(const char* name) const
    {
        QFile file(m_folder.filePath(name));
        const int id = file.open(QIODevice::ReadOnly) ? file.readAll().trimmed().toInt() : 0;
        return id > 0 && kill(id, 0) != 0 && errno == ESRCH;
    }

private:
    QTemporaryDir m_folder;
};

} // namespace pipewright::test
