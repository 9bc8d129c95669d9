// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/widgets/runtimefolder.h"

#include <QDir>
#include <QFile>

#include <unistd.h>

namespace pipewright {

void ensureRuntimeFolder()
{
    if (!qEnvironmentVariableIsEmpty("XDG_RUNTIME_DIR"))
        return;
    const QString folder = QDir::tempPath() + QStringLiteral("/pipewright-runtime-%1").arg(getuid());
    if (!QDir().mkpath(folder))
        return;
    QFile::setPermissions(folder, QFile::ReadOwner | QFile::WriteOwner | QFile::ExeOwner);
    qputenv("XDG_RUNTIME_DIR", QFile::encodeName(folder));
}

} // namespace pipewright
