// SPDX-License-Identifier: GPL-3.0-or-later
// The events of a Chrome trace in parsed batches of a quarter of a megabyte, in the file's order. A long file is
// scanned by a second thread, and each batch is parsed by whichever of the two threads is free: the one that scans when
// enough is scanned, the one that takes when it would wait. A file of one batch, or a machine of one core, has no
// second thread.
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
        std::int64_t number = 0; ///< in the file's list, from 1
        bool readable = false;   ///< false: no JSON
        ChromeEvent event;
    };
    struct Member {
        std::string key, text;
    };
    struct Batch {
        std::vector<Numbered> events;
        std::vector<Member> members; ///< of the top level, behind the events
        double fraction = 0;         ///< of the file, when they were read
    };

    ChromeBatches(ByteSource& source, std::string where);
    ~ChromeBatches();
    ChromeBatches(const ChromeBatches&) = delete;
    ChromeBatches& operator=(const ChromeBatches&) = delete;
    /// Valid until the next call; null at the end. Throws Error where the file is none of this kind or cannot be read.
    const Batch* next();
    /// What scanning found, and how many events there were; at the end.
    const ImportReport& report() const;

private:
    struct Private;
    struct Work; ///< a batch on its way
    std::unique_ptr<Private> d;
};

} // namespace pipewright
