// SPDX-License-Identifier: GPL-3.0-or-later
// A database as a file for parsers that open it with SQLite, and what makes SQLite quick enough to fuzz: it counts no
// memory, locks nothing, reads the file's bytes from memory, and knows without asking the system that no journal lies
// beside the file before it makes one itself. Its parsing, checks and results stay as they are.
#pragma once

#include "temporaryfile.h"

#include <sqlite3.h>

#include <algorithm>
#include <cstring>

#include <malloc.h>

namespace pipewright::fuzz {

class DatabaseFile {
public:
    /// One at a time. `ending`: of the name.
    explicit DatabaseFile(const std::string& ending) : m_file(ending, TemporaryFile::Kind::OfAFolder)
    {
        static const bool once = configure();
        if (!once)
            std::abort();
    }
    ~DatabaseFile() { removeBeside(); }
    DatabaseFile(const DatabaseFile&) = delete;
    DatabaseFile& operator=(const DatabaseFile&) = delete;

    /// `data` must live until the next call.
    void fill(const std::uint8_t* data, std::size_t size)
    {
        m_file.fill(data, size); // parsers also ask the system for the file's size and first bytes
        removeBeside();          // what was made beside the input before
        content = data;
        contentSize = static_cast<sqlite3_int64>(size);
    }
    const std::string& path() const { return m_file.path(); }

private:
    inline static const std::uint8_t* content = nullptr;
    inline static sqlite3_int64 contentSize = 0;
    inline static bool journalMade = false;
    inline static sqlite3_vfs *system = nullptr, own;
    inline static sqlite3_io_methods fromMemory;

    static bool configure()
    {
        // Giving memory back to the system and asking for it again takes longer than most of SQLite's statements.
        mallopt(M_TRIM_THRESHOLD, 1 << 30);
        mallopt(M_TOP_PAD, 16 << 20);
        if (sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0) != SQLITE_OK) // that is a lock per allocation
            return false;
        system = sqlite3_vfs_find("unix-none"); // a lock is a system call, and nobody else has the file open
        if (system == nullptr)
            return false;
        own = *system;
        own.zName = "fuzz";
        own.xOpen = open;
        own.xAccess = access;
        own.xFullPathname = fullPathname;
        return sqlite3_vfs_register(&own, 1) == SQLITE_OK;
    }

    static int open(sqlite3_vfs*, sqlite3_filename name, sqlite3_file* file, int flags, int* opened)
    {
        const int code = system->xOpen(system, name, file, flags, opened);
        if (code != SQLITE_OK)
            return code;
        if ((flags & (SQLITE_OPEN_WAL | SQLITE_OPEN_MAIN_JOURNAL)) != 0)
            journalMade = true;
        if ((flags & SQLITE_OPEN_MAIN_DB) != 0 && (flags & SQLITE_OPEN_READONLY) != 0) {
            fromMemory = *file->pMethods;
            fromMemory.xRead = read;
            file->pMethods = &fromMemory;
        }
        return SQLITE_OK;
    }
    static int access(sqlite3_vfs*, const char* name, int flags, int* found)
    {
        if (journalMade)
            return system->xAccess(system, name, flags, found);
        *found = 0; // SQLite asks for journals only
        return SQLITE_OK;
    }
    /// The name is absolute and no link; SQLite asks the system about each of its folders.
    static int fullPathname(sqlite3_vfs*, const char* name, int room, char* full)
    {
        return sqlite3_snprintf(room, full, "%s", name) != nullptr ? SQLITE_OK : SQLITE_CANTOPEN;
    }
    static int read(sqlite3_file*, void* to, int amount, sqlite3_int64 offset)
    {
        const int there = static_cast<int>(std::clamp<sqlite3_int64>(contentSize - offset, 0, amount));
        if (there > 0)
            std::memcpy(to, content + offset, static_cast<std::size_t>(there));
        std::memset(static_cast<char*>(to) + there, 0, static_cast<std::size_t>(amount - there));
        return there == amount ? SQLITE_OK : SQLITE_IOERR_SHORT_READ;
    }

    void removeBeside() const
    {
        if (!journalMade)
            return;
        for (const char* beside : {"-wal", "-shm", "-journal"})
            ::unlink((path() + beside).c_str());
        journalMade = false;
    }

    TemporaryFile m_file;
};

} // namespace pipewright::fuzz
