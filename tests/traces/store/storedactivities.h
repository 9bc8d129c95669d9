// SPDX-License-Identifier: GPL-3.0-or-later
// Made-up traces of other tools as the analysis reads them: written to a database and read back.
#pragma once

#include "traces/store/activities.h"
#include "traces/store/activitystore.h"

#include <QTemporaryDir>

namespace pipewright::test {

inline StoredActivities stored(TraceData data, int ranks = 1)
{
    const QTemporaryDir folder;
    const std::string path = folder.filePath(QStringLiteral("trace.db")).toStdString();
    data.ranks = ranks;
    writeActivities(path, data, {}, true);
    return readActivities(path);
}

} // namespace pipewright::test
