# SPDX-License-Identifier: GPL-3.0-or-later
# The CUDA plugin: a shared object of its own with the static CUDA runtime inside, opened at run time. The
# program itself knows only its table, so it needs no NVIDIA library. A driver runs what toolkits of its own major
# version or an older one made, so there may be a plugin of each, pipewright_cuda12.so and pipewright_cuda13.so: that
# of the first toolkit is built here, that of PIPEWRIGHT_CUDA12 by a build of its own. Debian 12's CMake cannot tell
# nvcc about C++20, hence the option by hand.
add_custom_target(gpu_plugins) # empty where there is none
if(PIPEWRIGHT_CUDA)
    find_program(PIPEWRIGHT_NVCC nvcc HINTS ENV CUDA_HOME PATHS /usr/local/cuda PATH_SUFFIXES bin)
    set(nvcc_failed "")
    if(PIPEWRIGHT_NVCC)
        # A toolkit that cannot use the C++ compiler that is here would end configuring.
        file(WRITE ${CMAKE_BINARY_DIR}/trial.cu "")
        separate_arguments(flags UNIX_COMMAND "${CMAKE_CUDA_FLAGS}")
        if(CMAKE_CUDA_HOST_COMPILER)
            list(APPEND flags -ccbin ${CMAKE_CUDA_HOST_COMPILER})
        endif()
        execute_process(COMMAND ${PIPEWRIGHT_NVCC} ${flags} -c ${CMAKE_BINARY_DIR}/trial.cu -o ${CMAKE_BINARY_DIR}/trial.o
                        RESULT_VARIABLE nvcc_failed OUTPUT_VARIABLE nvcc_says ERROR_VARIABLE nvcc_says)
        string(REGEX REPLACE "[\n;]+" " " nvcc_says "${nvcc_says}")
        string(STRIP "${nvcc_says}" nvcc_says)
    endif()
    if(PIPEWRIGHT_NVCC AND NOT nvcc_failed)
        set(CMAKE_CUDA_COMPILER ${PIPEWRIGHT_NVCC})
        set(CMAKE_CUDA_ARCHITECTURES OFF) # for CMake's own trial, before the toolkit's version is known
        set(CMAKE_CUDA_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
        enable_language(CUDA)
        find_package(CUDAToolkit 12.4 QUIET) # the first with green contexts
        set(architectures 75-real 80-real 86-real 89-real 90-real)
        if(CUDAToolkit_VERSION VERSION_GREATER_EQUAL 12.8)
            list(APPEND architectures 100-real 120-real)
        endif()
        set(PIPEWRIGHT_CUDA_ARCHITECTURES ${architectures} 90-virtual CACHE STRING
            "What the GPU code is compiled for; few are enough while developing")
        set(CMAKE_CUDA_ARCHITECTURES ${PIPEWRIGHT_CUDA_ARCHITECTURES})
        find_path(PIPEWRIGHT_CUPTI_INCLUDE cupti.h HINTS ${CUDAToolkit_INCLUDE_DIRS} PATHS ${CUDAToolkit_BIN_DIR}/../extras/CUPTI
                  PATH_SUFFIXES include)
    endif()
    if(NOT PIPEWRIGHT_NVCC)
        feature_off("CUDA plugin" "nvcc was not found (the CUDA toolkit, 12.4 or later)")
    elseif(nvcc_failed)
        feature_off("CUDA plugin" "${PIPEWRIGHT_NVCC} compiles nothing here: ${nvcc_says} (CMAKE_CUDA_HOST_COMPILER names another C++ compiler)")
    elseif(NOT CUDAToolkit_FOUND)
        feature_off("CUDA plugin" "the CUDA toolkit is older than 12.4")
    elseif(NOT PIPEWRIGHT_CUPTI_INCLUDE)
        feature_off("CUDA plugin" "CUPTI's header was not found in the CUDA toolkit")
    else()
        set(major ${CUDAToolkit_VERSION_MAJOR})
        # As small as all drivers of this major version can read: what --compress-mode=size makes needs one for CUDA 12.4
        # (nvcc's documentation, at that option).
        set(smallest --compress-mode=size)
        if(major LESS 13)
            set(smallest -Xfatbin=-compress-all)
        endif()
        option(PIPEWRIGHT_CUDA_FAST_COMPILE "Compile GPU code quickly, with slow kernels, where the toolkit can (CUDA 13)" OFF)
        set(fast_compile "")
        if(PIPEWRIGHT_CUDA_FAST_COMPILE AND major GREATER_EQUAL 13)
            set(fast_compile --Ofast-compile=max)
        endif()
        # NCCL's header is the same for each toolkit, and lies in a folder with the other headers of one.
        find_path(PIPEWRIGHT_NCCL_INCLUDE nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
        if(PIPEWRIGHT_NCCL_INCLUDE)
            configure_file(${PIPEWRIGHT_NCCL_INCLUDE}/nccl.h ${CMAKE_BINARY_DIR}/nccl/nccl.h COPYONLY)
        else()
            feature_off("NCCL between GPUs" "nccl.h was not found (PIPEWRIGHT_NCCL_INCLUDE)")
        endif()
        include(${CMAKE_SOURCE_DIR}/kernels/cuda/cudnn.cmake)
        file(GLOB_RECURSE sources CONFIGURE_DEPENDS executor/cuda/plugin/*.cpp)
        file(GLOB_RECURSE kernels CONFIGURE_DEPENDS kernels/cuda/*.cu)
        add_library(pipewright_cuda SHARED ${sources} ${kernels} kernels/cuda/fusedattention.cpp)
        with_cudnn(pipewright_cuda)
        # The kernels, as the plugin has them, against their references, for a machine that has a GPU; without Qt, and
        # started by tests/gpu.sh. Part of every bundle; beside the tests nothing needs it.
        set(loader executor/cuda/loader.cpp executor/cuda/libraryplaces.cpp)
        add_executable(pipewright_gpucheck tests/gpu/gpucheck.cu tests/kernels/reference/reference.cpp
                       tests/kernels/reference/decoder.cpp ${loader})
        target_link_libraries(pipewright_gpucheck PRIVATE pipewright_cuda)
        add_executable(pipewright_slicecheck tests/gpu/slicecheck.cu ${loader})
        foreach(check pipewright_gpucheck pipewright_slicecheck)
            set_target_properties(${check} PROPERTIES EXCLUDE_FROM_ALL ${PIPEWRIGHT_TESTS} OUTPUT_NAME ${check}${major}
                                  INSTALL_RPATH "$ORIGIN;$ORIGIN/../lib")
            target_link_libraries(${check} PRIVATE CUDA::cudart_static fmt::fmt ${CMAKE_DL_LIBS} rt Threads::Threads)
            target_include_directories(${check} PRIVATE tests)
        endforeach()
        foreach(target pipewright_cuda pipewright_gpucheck pipewright_slicecheck)
            target_include_directories(${target} PRIVATE ${CMAKE_BINARY_DIR}/rooms/executor/cuda ${CMAKE_BINARY_DIR}/rooms/kernels
                                       ${CMAKE_BINARY_DIR}/rooms/core/cluster ${CMAKE_BINARY_DIR}/rooms/core/base)
            target_include_directories(${target} SYSTEM PRIVATE ${CMAKE_BINARY_DIR}/nccl ${PIPEWRIGHT_CUPTI_INCLUDE})
            target_compile_options(${target} PRIVATE
                $<$<COMPILE_LANGUAGE:CUDA>:-std=c++20 --extended-lambda --Werror=all-warnings ${smallest} ${fast_compile}>)
            set_target_properties(${target} PROPERTIES CXX_VISIBILITY_PRESET hidden CUDA_VISIBILITY_PRESET hidden
                                  CUDA_STANDARD_REQUIRED OFF UNITY_BUILD OFF)
        endforeach()
        set_target_properties(pipewright_cuda PROPERTIES PREFIX "" OUTPUT_NAME pipewright_cuda${major}
                              LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin INSTALL_RPATH "$ORIGIN")
        target_link_libraries(pipewright_cuda PRIVATE CUDA::cudart_static ${CMAKE_DL_LIBS} rt Threads::Threads)
        target_link_options(pipewright_cuda PRIVATE -Wl,--no-undefined -Wl,--exclude-libs,ALL)
        add_dependencies(gpu_plugins pipewright_cuda)

        find_program(PIPEWRIGHT_CUDA12 nvcc PATHS /usr/local/cuda-12.9 /usr/local/cuda-12.8 /usr/local/cuda-12.6
                     /usr/local/cuda-12.5 /usr/local/cuda-12.4 PATH_SUFFIXES bin NO_DEFAULT_PATH
                     DOC "nvcc of CUDA 12.4 or later, for a second plugin, which drivers from R525 on run")
        set(PIPEWRIGHT_CUDA12_ARCHITECTURES "" CACHE STRING "What it is compiled for; empty: all that its toolkit knows")
        if(PIPEWRIGHT_CUDA12 AND major GREATER 12)
            include(ExternalProject)
            set(second ${CMAKE_BINARY_DIR}/cuda12)
            set(chosen "")
            if(PIPEWRIGHT_CUDA12_ARCHITECTURES)
                string(REPLACE ";" "|" chosen "-DPIPEWRIGHT_CUDA_ARCHITECTURES=${PIPEWRIGHT_CUDA12_ARCHITECTURES}")
            endif()
            set(second_files ${second}/bin/pipewright_cuda12.so ${second}/bin/pipewright_gpucheck12
                             ${second}/bin/pipewright_slicecheck12)
            ExternalProject_Add(pipewright_second_plugin SOURCE_DIR ${CMAKE_SOURCE_DIR} BINARY_DIR ${second} PREFIX ${second}/made
                CMAKE_ARGS -DPIPEWRIGHT_NVCC=${PIPEWRIGHT_CUDA12} ${chosen} -DPIPEWRIGHT_NCCL_INCLUDE=${PIPEWRIGHT_NCCL_INCLUDE}
                           -DCMAKE_CUDA_FLAGS=${CMAKE_CUDA_FLAGS} -DCMAKE_BUILD_TYPE=${CMAKE_BUILD_TYPE}
                           -DCMAKE_EXE_LINKER_FLAGS=${CMAKE_EXE_LINKER_FLAGS} -DCMAKE_SHARED_LINKER_FLAGS=${CMAKE_SHARED_LINKER_FLAGS}
                           -DPIPEWRIGHT_CUDNN_FRONTEND=${PIPEWRIGHT_CUDNN_FRONTEND}
                           -DPIPEWRIGHT_GUI=OFF -DPIPEWRIGHT_TESTS=OFF -DPIPEWRIGHT_GECODE=OFF
                LIST_SEPARATOR | BUILD_ALWAYS ON BUILD_BYPRODUCTS ${second_files} INSTALL_COMMAND ""
                BUILD_COMMAND ${CMAKE_COMMAND} --build <BINARY_DIR> --target pipewright_cuda pipewright_gpucheck pipewright_slicecheck)
            # Beside the first, where the program looks.
            ExternalProject_Add_Step(pipewright_second_plugin bring DEPENDEES build ALWAYS ON
                COMMAND ${CMAKE_COMMAND} -E copy_if_different ${second_files} ${CMAKE_BINARY_DIR}/bin)
            add_dependencies(gpu_plugins pipewright_second_plugin)
        elseif(major GREATER 12)
            feature_off("second CUDA plugin" "no nvcc of CUDA 12 was found (PIPEWRIGHT_CUDA12): drivers before R580 cannot be used")
        endif()
    endif()
else()
    feature_off("CUDA plugin" "PIPEWRIGHT_CUDA is off")
endif()
