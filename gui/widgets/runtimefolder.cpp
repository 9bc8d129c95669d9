// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/widgets/runtimefolder.h"

#include <QDir>
#include <QFile>
#include <QFileInfo>

#include <cerrno>

#include <sys/stat.h>
#include <unistd.h>

namespace pipewright {

bool makePrivateFolder(const QString& folder)
{
    if (!QDir().mkpath(QFileInfo(folder).absolutePath()))
        return false;
    const QByteArray name = QFile::encodeName(folder);
    if (::mkdir(name.constData(), 0700) != 0 && errno != EEXIST)
        return false;
    struct stat status {};
    return ::lstat(name.constData(), &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == ::geteuid()
           && ((status.st_mode & 077) == 0 || ::chmod(name.constData(), 0700) == 0);
}

void ensureRuntimeFolder()
{
    if (!qEnvironmentVariableIsEmpty("XDG_RUNTIME_DIR"))
        return;
    const QString folder = QDir::tempPath() + QStringLiteral("/pipewright-runtime-%1").arg(getuid());
    if (!makePrivateFolder(folder))
        return; // Qt then warns and works without it
    qputenv("XDG_RUNTIME_DIR", QFile::encodeName(folder));
}

} // namespace pipewright
