# SPDX-License-Identifier: GPL-3.0-or-later
# The rooms of the executor, from the ground up.
pipewright_room(executor/runtime USES kernels traces/store core/predict PRECOMPILE fmt/format.h)
pipewright_room(executor/host USES executor/runtime)
pipewright_room(executor/training USES executor/runtime core/presets)
pipewright_room(executor/cuda USES executor/runtime)
pipewright_room(executor/mpi USES executor/host executor/cuda EXCLUDE "/mpimesh\\.cpp$")
pipewright_room(executor/sharding USES executor/host executor/training core/sharding)
pipewright_room(executor/run USES executor/mpi executor/training)
pipewright_room(executor/torch USES executor/run core/exchange)
pipewright_room(executor/experiment USES executor/run core/exchange)
pipewright_floor(executor)
set_source_files_properties(executor/torch/python.cpp PROPERTIES SKIP_PRECOMPILE_HEADERS ON
                            COMPILE_DEFINITIONS PIPEWRIGHT_TORCH_DIR="${CMAKE_SOURCE_DIR}/executor/torch")
target_link_libraries(pipewright_executor_cuda PUBLIC ${CMAKE_DL_LIBS})

if(PIPEWRIGHT_MPI)
    set(MPI_CXX_SKIP_MPICXX TRUE)
    find_package(MPI QUIET COMPONENTS CXX)
    if(MPI_CXX_FOUND)
        # Linked by the program alone: everything else, tests included, needs no MPI.
        add_library(pipewright_mpimesh STATIC executor/mpi/mpimesh.cpp)
        target_link_libraries(pipewright_mpimesh PUBLIC pipewright_executor_mpi PRIVATE MPI::MPI_CXX)
    else()
        feature_off("MPI backend" "MPI was not found (libopenmpi-dev openmpi-bin)")
    endif()
else()
    feature_off("MPI backend" "PIPEWRIGHT_MPI is off")
endif()
