# SPDX-License-Identifier: GPL-3.0-or-later
# The rooms of core, from the ground up. A room may include what is listed with it and what that brings along;
# pipewright_room() refuses a room that is declared further down.
find_library(GLPK_LIBRARY NAMES glpk REQUIRED)
find_path(GLPK_INCLUDE glpk.h PATH_SUFFIXES glpk REQUIRED)

pipewright_room(core/base LINK fmt::fmt Threads::Threads)
pipewright_room(core/json USES core/base LINK nlohmann_json::nlohmann_json FUZZED)
pipewright_room(core/rates USES core/json FUZZED)
pipewright_room(core/cluster COLD USES core/rates)
pipewright_room(core/model COLD USES core/base)
pipewright_room(core/presets COLD USES core/json core/cluster core/model FUZZED)
pipewright_room(core/sharding COLD USES core/cluster core/model LINK ${GLPK_LIBRARY}
                HOT alternatives astar charge ratios relation searchspace strategy synthesis machine)
pipewright_room(core/schedule USES core/base)
pipewright_room(core/buildingblock USES core/schedule)
pipewright_room(core/families USES core/schedule core/buildingblock)
pipewright_room(core/design USES core/presets core/sharding core/families)
pipewright_room(core/program USES core/design)
pipewright_room(core/predict USES core/program)
pipewright_room(core/search USES core/predict)
pipewright_room(core/plan USES core/search)
pipewright_room(core/files USES core/json core/design FUZZED)
pipewright_room(core/exchange COLD USES core/predict FUZZED)
pipewright_floor(core)
# Designs of a million blocks are read and written by json and files, so these are not cold.

# For one file each: a definition for all would keep files from sharing what was compiled before.
set_source_files_properties(core/presets/presets.cpp PROPERTIES
                            COMPILE_DEFINITIONS PIPEWRIGHT_RESOURCE_DIR="${CMAKE_SOURCE_DIR}/resources")
target_include_directories(pipewright_core_sharding PRIVATE ${GLPK_INCLUDE})

# Gecode proves what the search finds; without it the search only knows its bounds. Only headers that need no Boost.
find_path(GECODE_INCLUDE gecode/int.hh)
set(GECODE_LIBRARIES "")
foreach(part search int kernel support)
    find_library(GECODE_${part} gecode${part})
    list(APPEND GECODE_LIBRARIES ${GECODE_${part}})
endforeach()
if(NOT PIPEWRIGHT_GECODE)
    feature_off("constraint programming in the search" "PIPEWRIGHT_GECODE is off")
elseif(GECODE_INCLUDE AND NOT "${GECODE_LIBRARIES}" MATCHES "NOTFOUND")
    set_source_files_properties(core/search/constraintsearch.cpp PROPERTIES
                                COMPILE_DEFINITIONS PIPEWRIGHT_GECODE)
    target_include_directories(pipewright_core_search SYSTEM PRIVATE ${GECODE_INCLUDE})
    target_link_libraries(pipewright_core_search PUBLIC ${GECODE_LIBRARIES})
else()
    feature_off("constraint programming in the search" "not found: Gecode (libgecode-dev)")
endif()
if(PIPEWRIGHT_SANITIZE STREQUAL thread)
    # It starts no thread, and its search for plans would take most of the time of every test of groups.
    target_compile_options(pipewright_core_sharding PRIVATE -fno-sanitize=thread)
    set_target_properties(pipewright_core_sharding PROPERTIES DISABLE_PRECOMPILE_HEADERS ON)
endif()
