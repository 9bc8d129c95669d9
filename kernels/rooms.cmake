# SPDX-License-Identifier: GPL-3.0-or-later
# The maths of a stage on the host; the CUDA kernels belong to the plugin (executor/cuda).
#
# The pthread build of OpenBLAS by name, kept to one thread (kernels/host/gemm.h): Debian's serial build is
# compiled without locks, and concurrent callers, one per device here, overwrite each other's work space.
set(openblas_folders openblas-pthread x86_64-linux-gnu/openblas-pthread aarch64-linux-gnu/openblas-pthread)
find_library(OPENBLAS_LIBRARY NAMES openblas PATH_SUFFIXES ${openblas_folders} REQUIRED)
find_library(OPENBLAS_STATIC_LIBRARY NAMES libopenblas.a PATH_SUFFIXES ${openblas_folders})
find_path(OPENBLAS_INCLUDE openblas_config.h PATH_SUFFIXES ${openblas_folders} REQUIRED)
set(openblas ${OPENBLAS_LIBRARY})
if(PIPEWRIGHT_STATIC_BLAS)
    if(NOT OPENBLAS_STATIC_LIBRARY)
        message(FATAL_ERROR "PIPEWRIGHT_STATIC_BLAS needs libopenblas.a, which was not found (libopenblas-pthread-dev)")
    endif()
    set(openblas ${OPENBLAS_STATIC_LIBRARY})
endif()
# The static library holds code for twenty processors, and its table of them keeps all of it: 21 MB. Where there are GPUs
# it is enough to have AVX-512 (SKYLAKEX), AVX2 (HASWELL), and SSE3 (PRESCOTT) for whatever else: the linker is told that
# the others' tables are these, and leaves out the rest.
set(openblas_of_few_processors LINKER:--gc-sections)
foreach(kept "PRESCOTT ATOM NANO CORE2 PENRYN DUNNINGTON OPTERON OPTERON_SSE3 BARCELONA BOBCAT NEHALEM SANDYBRIDGE BULLDOZER PILEDRIVER STEAMROLLER"
             "HASWELL EXCAVATOR ZEN" "SKYLAKEX COOPERLAKE SAPPHIRERAPIDS")
    separate_arguments(others UNIX_COMMAND ${kept})
    list(POP_FRONT others table)
    list(TRANSFORM others REPLACE "(.+)" "LINKER:--defsym=gotoblas_\\1=gotoblas_${table}")
    list(APPEND openblas_of_few_processors ${others})
endforeach()
if(OPENBLAS_STATIC_LIBRARY)
    include(CheckCXXSourceCompiles)
    set(CMAKE_REQUIRED_LIBRARIES ${OPENBLAS_STATIC_LIBRARY} Threads::Threads)
    set(CMAKE_REQUIRED_LINK_OPTIONS ${openblas_of_few_processors})
    check_cxx_source_compiles("extern \"C\" void openblas_set_num_threads(int); int main() { openblas_set_num_threads(1); }"
                              openblas_can_be_of_few_processors)
    unset(CMAKE_REQUIRED_LIBRARIES)
    unset(CMAKE_REQUIRED_LINK_OPTIONS)
endif()
if(NOT openblas_can_be_of_few_processors)
    set(openblas_of_few_processors "")
    if(PIPEWRIGHT_STATIC_BLAS)
        message(STATUS "OpenBLAS is of all processors that it knows: it is built for one only, or not for x86-64")
    endif()
endif()

pipewright_room(kernels RECURSIVE EXCLUDE /kernels/cuda/ LINK Threads::Threads ${openblas})
target_include_directories(pipewright_kernels PRIVATE ${OPENBLAS_INCLUDE})
if(PIPEWRIGHT_STATIC_BLAS)
    target_link_options(pipewright_kernels INTERFACE ${openblas_of_few_processors})
endif()
# Precompiled headers would bring their own level of optimisation.
set_target_properties(pipewright_kernels PROPERTIES DISABLE_PRECOMPILE_HEADERS ON)
# The loops of the maths vectorise in every configuration. Products and sums are never contracted, so a
# loop gives the same bits at every register width, in its tail, and wherever its buffers lie.
target_compile_options(pipewright_kernels PRIVATE -O3 -fno-math-errno -fno-trapping-math -ffp-contract=off)
