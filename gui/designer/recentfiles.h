// SPDX-License-Identifier: GPL-3.0-or-later
// The designs opened last, newest first, remembered between sessions. Deleted files are not shown.
#pragma once

#include <QStringList>

class QSettings;

namespace pipewright {

class RecentFiles {
public:
    static constexpr int limit = 10;
    explicit RecentFiles(QSettings& settings) : m_settings(settings) {}
    QStringList list() const;
    void add(const QString& path);
    void clear();

private:
    QSettings& m_settings;
};

} // namespace pipewright
