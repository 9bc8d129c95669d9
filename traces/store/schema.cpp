// SPDX-License-Identifier: GPL-3.0-or-later
#include "traces/store/schema.h"

namespace pipewright::traceschema {

// RECORDS is clustered by its key: a step is one range of pages, and inserting in key order (the writer sorts each
// batch) is cheaper than row plus index.
const char* const createTables = R"sql(
    CREATE TABLE META (
        name  TEXT PRIMARY KEY NOT NULL,
        value
    ) WITHOUT ROWID;

    CREATE TABLE DEVICES (
        deviceId  INTEGER PRIMARY KEY,
        name      TEXT NOT NULL,
        peakBytes INTEGER
    );

    CREATE TABLE TASKS (
        taskId     INTEGER PRIMARY KEY,
        kind       TEXT NOT NULL,
        op         TEXT NOT NULL,
        stage      INTEGER NOT NULL,
        microbatch INTEGER NOT NULL,
        replica    INTEGER NOT NULL,
        deviceId   INTEGER NOT NULL,
        peer       INTEGER NOT NULL,
        label      TEXT NOT NULL
    );

    CREATE TABLE RECORDS (
        step     INTEGER NOT NULL,
        taskId   INTEGER NOT NULL,
        deviceId INTEGER NOT NULL,
        start    INTEGER NOT NULL,
        end      INTEGER NOT NULL,
        PRIMARY KEY (step, taskId, deviceId)
    ) WITHOUT ROWID;

    CREATE TABLE STEPS (
        step  INTEGER PRIMARY KEY,
        start INTEGER NOT NULL,
        end   INTEGER NOT NULL,
        loss  REAL,
        coreWait INTEGER
    );

    CREATE TABLE MEMORY (
        step     INTEGER NOT NULL,
        deviceId INTEGER NOT NULL,
        start    INTEGER NOT NULL,
        bytes    INTEGER NOT NULL
    );
    CREATE INDEX MEMORY_BY_STEP ON MEMORY (step);
)sql";

const char* const createLaneTables = R"sql(
    CREATE TABLE StringIds (
        id    INTEGER PRIMARY KEY,
        value TEXT NOT NULL
    );

    CREATE TABLE LANES (
        laneId      INTEGER PRIMARY KEY,
        kind        TEXT NOT NULL,
        rank        INTEGER NOT NULL,
        processId   INTEGER NOT NULL,
        threadId    INTEGER NOT NULL,
        deviceId    INTEGER,
        name        TEXT NOT NULL,
        processName TEXT NOT NULL,
        sortIndex   INTEGER NOT NULL,
        communication INTEGER NOT NULL,
        taskDeviceId  INTEGER
    );
)sql";

const char* const createGpuMemoryTable = R"sql(
    CREATE TABLE CUDA_GPU_MEMORY_USAGE_EVENTS (
        start         INTEGER NOT NULL,
        deviceId      INTEGER,
        bytes         INTEGER NOT NULL,
        correlationId INTEGER,
        step          INTEGER NOT NULL,
        taskId        INTEGER
    );
)sql";

const char* const createActivityTables = R"sql(
    CREATE TABLE SKIPPED (
        reason  TEXT PRIMARY KEY NOT NULL,
        count   INTEGER NOT NULL,
        lost    INTEGER NOT NULL,
        example TEXT NOT NULL
    ) WITHOUT ROWID;

    CREATE TABLE CLOCKS (
        rank     INTEGER PRIMARY KEY,
        offset   INTEGER NOT NULL,
        residual INTEGER NOT NULL,
        events   INTEGER NOT NULL,
        method   TEXT NOT NULL
    );

    CREATE TABLE SLICE_CHUNKS (
        laneId       INTEGER NOT NULL,
        row          INTEGER NOT NULL,
        chunk        INTEGER NOT NULL,
        count        INTEGER NOT NULL,
        starts       BLOB NOT NULL,
        durations    BLOB NOT NULL,
        names        BLOB NOT NULL,
        kinds        BLOB NOT NULL,
        records      BLOB NOT NULL,
        correlations BLOB,
        PRIMARY KEY (laneId, row, chunk)
    );
)sql";

} // namespace pipewright::traceschema
