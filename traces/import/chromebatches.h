// SPDX-License-Identifier: GPL-3.0-or-later
// The events of a Chrome trace in parsed batches of a quarter of a megabyte, in the file's order. A second thread scans
// long files. A batch is parsed by whichever thread is free: the scanning thread when enough is scanned, the calling
// thread when it would wait. For a file of one batch, or on a machine with one core, there is no second thread.
#pragma once

#include "traces/import/bytesource.h"
#include "traces/import/chromeevent.h"
#include "traces/store/importreport.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace pipewright {

class ChromeBatches {
public:
    struct Numbered {
        std::int64_t number = 0; ///< number in the file's list, from 1
        bool readable = false;   ///< false: not valid JSON
        ChromeEvent event;
    };
    struct Member {
        std::string key, text;
    };
    struct Batch {
        std::vector<Numbered> events;
        std::vector<Member> members; ///< of the top level, after the events
        double fraction = 0;         ///< share of the file that was read by then
    };

    ChromeBatches(ByteSource& source, std::string where);
    ~ChromeBatches();
    ChromeBatches(const ChromeBatches&) = delete;
    ChromeBatches& operator=(const ChromeBatches&) = delete;
    /// Valid until the next call; null at the end. Throws Error when the file is not a Chrome trace or cannot be read.
    const Batch* next();
    /// The report of scanning, with the number of events; complete at the end.
    const ImportReport& report() const;

private:
    struct Private;
    struct Work; ///< a batch that is being scanned or parsed
    std::unique_ptr<Private> d;
};

} // namespace pipewright
