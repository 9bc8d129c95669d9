// SPDX-License-Identifier: GPL-3.0-or-later
// Nsight Systems' SQLite exports (`nsys export --type sqlite`). Tables exist only if they have data, and columns vary
// between versions, so each is looked up first and may be missing. Names are numbers of StringIds. A kernel joins its
// launch by correlation id and process, not by correlation id alone; kernels of a CUDA graph share one launch. Ranges
// may begin before time zero or never end.
#pragma once

#include "traces/store/activity.h"
#include "traces/store/progress.h"

namespace pipewright {

/// Throws Error when the file is not such an export. Unusable rows are counted in the report.
TraceData importNsight(const std::string& path, const WorkProgress& progress = {});

} // namespace pipewright
