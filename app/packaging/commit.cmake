# SPDX-License-Identifier: GPL-3.0-or-later
# Writes HEADER, which says of which commit SOURCE is a checkout; empty where it is none. Left alone when it says so
# already.
cmake_minimum_required(VERSION 3.25)
set(commit "")
if(EXISTS ${SOURCE}/.git)
    execute_process(COMMAND git -C ${SOURCE} --no-optional-locks describe --always --exclude * --abbrev=12 "--dirty=, changed"
                    OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
file(CONFIGURE OUTPUT ${HEADER} @ONLY CONTENT "#pragma once\n#define PIPEWRIGHT_COMMIT \"@commit@\"\n")
