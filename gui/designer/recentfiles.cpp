// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/designer/recentfiles.h"

#include <QFileInfo>
#include <QSettings>

#include <algorithm>

namespace pipewright {

namespace {

const QString key = QStringLiteral("recentFiles");

} // namespace

QStringList RecentFiles::list() const
{
    QStringList present;
    const QStringList stored = m_settings.value(key).toStringList();
    std::copy_if(stored.begin(), stored.end(), std::back_inserter(present),
                 [](const QString& path) { return QFileInfo::exists(path); });
    return present;
}

void RecentFiles::add(const QString& path)
{
    const QString absolute = QFileInfo(path).absoluteFilePath();
    QStringList paths = m_settings.value(key).toStringList();
    paths.removeAll(absolute);
    paths.prepend(absolute);
    while (paths.size() > limit)
        paths.removeLast();
    m_settings.setValue(key, paths);
}

void RecentFiles::clear()
{
    m_settings.remove(key);
}

} // namespace pipewright
