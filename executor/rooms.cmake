# SPDX-License-Identifier: GPL-3.0-or-later
# The rooms of the executor, from the ground up.
pipewright_room(executor/runtime COLD USES kernels traces/store core/predict)
pipewright_room(executor/host USES executor/runtime)
pipewright_room(executor/machine COLD USES executor/host)
pipewright_room(executor/stage COLD USES executor/runtime)
pipewright_room(executor/training COLD USES executor/stage core/presets)
pipewright_room(executor/cuda COLD USES executor/runtime)
pipewright_room(executor/mpi COLD USES executor/host executor/cuda LINK PkgConfig::sodium)
pipewright_room(executor/sharding COLD USES executor/host executor/training core/sharding
                HOT hosttensor membercollectives nodemaths packedcollectives)
pipewright_room(executor/run COLD USES executor/mpi executor/sharding)
pipewright_room(executor/experiment COLD USES executor/run core/exchange)
pipewright_room(executor/torch COLD USES executor/experiment)
pipewright_floor(executor)
set_source_files_properties(executor/torch/python.cpp PROPERTIES
                            COMPILE_DEFINITIONS PIPEWRIGHT_TORCH_DIR="${CMAKE_SOURCE_DIR}/executor/torch")
target_link_libraries(pipewright_executor_cuda PUBLIC ${CMAKE_DL_LIBS})
