# SPDX-License-Identifier: GPL-3.0-or-later
# What attention by cuDNN is built with: its headers, and NVIDIA's cudnn-frontend, which is headers too. Both are looked
# for in the folders that are named, in the toolkit, among the packages of the active Python (nvidia-cudnn-cu13,
# nvidia-cudnn-frontend) and where the system has headers. The library itself is opened at run time.
set(PIPEWRIGHT_CUDNN_FRONTEND "" CACHE PATH "Folder of NVIDIA's cudnn-frontend, or of its headers")
set(python_packages "")
find_program(PIPEWRIGHT_PYTHON python3)
if(PIPEWRIGHT_PYTHON)
    execute_process(COMMAND ${PIPEWRIGHT_PYTHON} -I -c "import site; print(';'.join(site.getsitepackages()))"
                    OUTPUT_VARIABLE python_packages OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
set(cudnn_packages ${python_packages})
list(TRANSFORM cudnn_packages APPEND /nvidia/cudnn)
find_path(PIPEWRIGHT_CUDNN_INCLUDE cudnn.h HINTS ${CUDAToolkit_INCLUDE_DIRS} PATHS ${cudnn_packages} PATH_SUFFIXES include)
find_path(PIPEWRIGHT_CUDNN_FRONTEND_INCLUDE cudnn_frontend.h HINTS ${PIPEWRIGHT_CUDNN_FRONTEND} PATHS ${python_packages}
          PATH_SUFFIXES include)
set(why_no_cudnn "")
if(NOT PIPEWRIGHT_CUDNN_INCLUDE)
    set(why_no_cudnn "cudnn.h was not found (PIPEWRIGHT_CUDNN_INCLUDE)")
elseif(NOT PIPEWRIGHT_CUDNN_FRONTEND_INCLUDE)
    set(why_no_cudnn "NVIDIA's cudnn-frontend was not found: install nvidia-cudnn-frontend with pip, or name its folder (PIPEWRIGHT_CUDNN_FRONTEND)")
else()
    file(STRINGS ${PIPEWRIGHT_CUDNN_FRONTEND_INCLUDE}/cudnn_frontend_version.h version
         REGEX "#define CUDNN_FRONTEND_M[A-Z]+_VERSION [0-9]+")
    string(REGEX REPLACE "[^0-9;]" "" version "${version}")
    list(JOIN version . version)
    if(version VERSION_LESS 1.32)
        set(why_no_cudnn "NVIDIA's cudnn-frontend is ${version}, older than 1.32")
    endif()
endif()
if(why_no_cudnn)
    feature_off("attention by cuDNN" "${why_no_cudnn}")
endif()

# with_cudnn(TARGET): where that was found, attention by cuDNN is part of it.
function(with_cudnn target)
    if(NOT why_no_cudnn)
        target_sources(${target} PRIVATE ${CMAKE_SOURCE_DIR}/kernels/cuda/attentiongraph.cpp
                       ${CMAKE_SOURCE_DIR}/kernels/cuda/cudnnlibrary.cpp)
        target_compile_definitions(${target} PRIVATE PIPEWRIGHT_HAS_CUDNN CUDNN_FRONTEND_SKIP_JSON_LIB)
        target_include_directories(${target} SYSTEM PRIVATE ${PIPEWRIGHT_CUDNN_FRONTEND_INCLUDE} ${PIPEWRIGHT_CUDNN_INCLUDE})
    endif()
endfunction()
