// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/defaultdata.h"

#include <filesystem>

namespace pipewright::app {

std::string defaultData(const Design& design)
{
    if (design.workload && design.workload->shape.architecture != Architecture::Decoder
        && design.workload->shape.architecture != Architecture::Encoder)
        return {};
    const std::filesystem::path sources = std::filesystem::path(PIPEWRIGHT_SOURCE_DIR) / "core";
    std::error_code ignored;
    return std::filesystem::is_directory(sources, ignored) ? sources.string() : std::string();
}

} // namespace pipewright::app
