// SPDX-License-Identifier: GPL-3.0-or-later
// Progress of long work on standard error: a bar on a terminal, or one JSON object per line for programs. By default
// nothing is printed into a file or pipe. The command provides the text.
#pragma once

#include "traces/store/progress.h"

#include <functional>
#include <mutex>
#include <string>

namespace pipewright::app {

/// Throws Error unless it is "auto" (a bar on a terminal), "bar", "json" or "none".
void checkProgressStyle(const std::string& choice);

class ProgressPrinter {
public:
    explicit ProgressPrinter(const std::string& choice); ///< see checkProgressStyle()
    ~ProgressPrinter();                                  ///< leaves a bar's line
    ProgressPrinter(const ProgressPrinter&) = delete;
    ProgressPrinter& operator=(const ProgressPrinter&) = delete;

    using Text = std::function<std::string()>;
    /// `fraction` of the work is done. Only the text that is needed is made: `beside`, to the right of the bar, or
    /// `object`, in JSON.
    void show(double fraction, const Text& beside, const Text& object);
    bool writesJson() const { return m_style == Style::Json; }
    void writeLine(const std::string& object); ///< for programs only
    /// Prints something else on standard error, on a line of its own. From any thread.
    void interrupt(const std::function<void()>& say);

private:
    enum class Style { Silent, Bar, Json };

    Style m_style = Style::Silent;
    std::mutex m_mutex;
    std::size_t m_drawn = 0; ///< length of the bar's current line; guarded by m_mutex
};

/// Reports each whole percent of the work on a trace once, as "import 12 %". The first Ctrl-C stops the work.
WorkProgress percentsOn(ProgressPrinter& printer, std::string what);

} // namespace pipewright::app
