// SPDX-License-Identifier: GPL-3.0-or-later
// `run --backend torch`: its own options, and what it prints.
#pragma once

#include "app/command.h"
#include "executor/torch/torchjob.h"

#include <string>

namespace pipewright::app {

struct TorchRunOptions {
    explicit TorchRunOptions(CLI::App& command);
    /// Throws Error when such an option was given with another backend, or an option of another backend with this one.
    void requireFitting(bool torch) const;

    /// `common` has the options of all backends. Returns the exit code; throws Error.
    int run(const std::string& designFile, TorchOptions common, const std::string& progress, bool json) const;

private:
    TorchOptions complete(TorchOptions common) const;

    CLI::App &m_command, &m_group;
    std::string m_module, m_python = "python3", m_collect;
    int m_ranks = 0, m_replicas = 1;
    bool m_synthetic = false, m_printCommand = false;
};

} // namespace pipewright::app
