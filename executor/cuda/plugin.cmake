# SPDX-License-Identifier: GPL-3.0-or-later
# The CUDA plugin: a shared object of its own with the static CUDA runtime inside, opened at run time. The
# program itself knows only its table, so it needs no NVIDIA library. Debian 12's CMake cannot tell nvcc about
# C++20, hence the option by hand.
if(PIPEWRIGHT_CUDA)
    find_program(PIPEWRIGHT_NVCC nvcc HINTS ENV CUDA_HOME PATHS /usr/local/cuda PATH_SUFFIXES bin)
    if(PIPEWRIGHT_NVCC)
        set(CMAKE_CUDA_COMPILER ${PIPEWRIGHT_NVCC})
        set(PIPEWRIGHT_CUDA_ARCHITECTURES "75-real;80-real;86-real;89-real;90-real;100-real;120-real;90-virtual" CACHE STRING
            "What the GPU code is compiled for; few are enough while developing")
        set(CMAKE_CUDA_ARCHITECTURES ${PIPEWRIGHT_CUDA_ARCHITECTURES})
        set(CMAKE_CUDA_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
        enable_language(CUDA)
        find_package(CUDAToolkit 13.0 QUIET)
    endif()
    if(NOT PIPEWRIGHT_NVCC)
        feature_off("CUDA plugin" "nvcc was not found (the CUDA toolkit, 13.0 or later)")
    elseif(NOT CUDAToolkit_FOUND)
        feature_off("CUDA plugin" "the CUDA toolkit is older than 13.0")
    else()
        file(GLOB_RECURSE sources CONFIGURE_DEPENDS executor/cuda/plugin/*.cpp)
        file(GLOB_RECURSE kernels CONFIGURE_DEPENDS kernels/cuda/*.cu)
        add_library(pipewright_cuda_kernels OBJECT ${kernels})
        target_link_libraries(pipewright_cuda_kernels PUBLIC CUDA::cudart_static)
        add_library(pipewright_cuda MODULE ${sources} $<TARGET_OBJECTS:pipewright_cuda_kernels>)
        # The kernels against their references, for a machine that has a GPU; without Qt, and started by tests/gpu.sh.
        # Part of every bundle; beside the tests nothing needs it.
        add_executable(pipewright_gpucheck tests/gpu/gpucheck.cu kernels/reference/reference.cpp kernels/reference/decoder.cpp executor/cuda/loader.cpp
                       executor/cuda/libraryplaces.cpp
                       $<TARGET_OBJECTS:pipewright_cuda_kernels>)
        set_target_properties(pipewright_gpucheck PROPERTIES EXCLUDE_FROM_ALL ${PIPEWRIGHT_TESTS})
        target_link_libraries(pipewright_gpucheck PRIVATE CUDA::cudart_static fmt::fmt ${CMAKE_DL_LIBS} rt Threads::Threads)
        target_include_directories(pipewright_gpucheck PRIVATE tests)
        foreach(target pipewright_cuda pipewright_cuda_kernels pipewright_gpucheck)
            target_include_directories(${target} PRIVATE ${CMAKE_BINARY_DIR}/rooms/executor/cuda ${CMAKE_BINARY_DIR}/rooms/kernels
                                       ${CMAKE_BINARY_DIR}/rooms/core/cluster ${CMAKE_BINARY_DIR}/rooms/core/base)
            target_compile_options(${target} PRIVATE
                $<$<COMPILE_LANGUAGE:CUDA>:-std=c++20 --extended-lambda --Werror=all-warnings>)
            set_target_properties(${target} PROPERTIES CXX_VISIBILITY_PRESET hidden CUDA_VISIBILITY_PRESET hidden
                                  CUDA_STANDARD_REQUIRED OFF UNITY_BUILD OFF)
        endforeach()
        set_target_properties(pipewright_cuda PROPERTIES PREFIX "" LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin
                              INSTALL_RPATH "$ORIGIN")
        target_link_libraries(pipewright_cuda PRIVATE CUDA::cudart_static ${CMAKE_DL_LIBS} rt Threads::Threads)
        target_link_options(pipewright_cuda PRIVATE -Wl,--no-undefined -Wl,--exclude-libs,ALL)
    endif()
else()
    feature_off("CUDA plugin" "PIPEWRIGHT_CUDA is off")
endif()
