// SPDX-License-Identifier: GPL-3.0-or-later
// Nsight Systems' SQLite exports (`nsys export --type sqlite`). Tables are there only when there is data for them and
// their columns drift from version to version, so each is looked up before it is read, and what is missing is left
// out. Names are numbers of StringIds; a kernel joins its launch by correlation id and process, not by correlation id
// alone; kernels of a CUDA graph share one launch. Ranges may begin before time zero and never end.
#pragma once

#include "traces/store/activity.h"
#include "traces/store/progress.h"

namespace pipewright {

/// Throws Error when the file is no such export. What a table holds that cannot be used is counted in the report.
TraceData importNsight(const std::string& path, const WorkProgress& progress = {});

} // namespace pipewright
