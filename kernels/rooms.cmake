# SPDX-License-Identifier: GPL-3.0-or-later
# The maths of a stage, on the host and once more as a reference; the CUDA kernels belong to the plugin (executor/cuda).
#
# The pthread build of OpenBLAS by name, kept to one thread (kernels/host/gemm.h): Debian's serial build is
# compiled without locks, and concurrent callers, one per device here, overwrite each other's work space.
set(openblas_name openblas)
if(PIPEWRIGHT_STATIC_BLAS)
    set(openblas_name libopenblas.a)
endif()
find_library(OPENBLAS_LIBRARY NAMES ${openblas_name} PATH_SUFFIXES openblas-pthread x86_64-linux-gnu/openblas-pthread
             aarch64-linux-gnu/openblas-pthread REQUIRED)
find_path(OPENBLAS_INCLUDE openblas_config.h PATH_SUFFIXES openblas-pthread x86_64-linux-gnu/openblas-pthread
          aarch64-linux-gnu/openblas-pthread REQUIRED)

pipewright_room(kernels RECURSIVE LINK Threads::Threads ${OPENBLAS_LIBRARY})
target_include_directories(pipewright_kernels PRIVATE ${OPENBLAS_INCLUDE})
# The loops of the maths vectorise in every configuration. Products and sums are never contracted, so a
# loop gives the same bits at every register width, in its tail, and wherever its buffers lie.
target_compile_options(pipewright_kernels PRIVATE -O3 -fno-math-errno -fno-trapping-math -ffp-contract=off)
