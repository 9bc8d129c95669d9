# SPDX-License-Identifier: GPL-3.0-or-later
# What is installed, in three components, and the packages that are made of it:
#   program     what a distribution's package holds; libraries come from the distribution
#   libraries   the shared libraries and Qt's plugins, for a folder that runs on another machine
#   checks      tests/gpu.sh and its programs
# `cmake --install` installs all three. The target `package` makes a .deb of the first and a .tar.gz of all; the target
# `wheel` makes a wheel of the program without the designer (README.md beside this file).

# Left out of a folder for other machines: the C library; the C++ library and expat, of which Debian 12's need a newer C
# library than what is built here otherwise does, and which every system has; and the driver of NVIDIA's GPUs.
set(libraries_of_the_system "^ld-linux" "^libc\\.so" "^libm\\.so" "^libdl\\.so" "^libpthread\\.so" "^librt\\.so"
                            "^libstdc\\+\\+\\.so" "^libgcc_s\\.so" "^libexpat\\.so" "^libcuda\\.so")

install(TARGETS pipewright RUNTIME_DEPENDENCY_SET needed RUNTIME DESTINATION bin COMPONENT program)
if(TARGET pipewright_gui)
    # What Qt loads at run time: windows under X, pictures without a screen, and icons and pictures in SVG.
    foreach(plugin platforms/QXcbIntegration platforms/QOffscreenIntegration imageformats/QSvg iconengines/QSvgIcon
                   platforminputcontexts/QComposePlatformInputContext)
        get_filename_component(folder ${plugin} DIRECTORY)
        get_filename_component(name ${plugin} NAME)
        find_package(Qt6${name}Plugin QUIET PATHS ${Qt6Gui_DIR} NO_DEFAULT_PATH)
        if(TARGET Qt6::${name}Plugin)
            install(IMPORTED_RUNTIME_ARTIFACTS Qt6::${name}Plugin RUNTIME_DEPENDENCY_SET needed
                    LIBRARY DESTINATION plugins/${folder} COMPONENT libraries)
        else()
            message(STATUS "The .tar.gz has no ${plugin}: this Qt does not say where that plugin is (Qt6${name}Plugin)")
        endif()
    endforeach()
    file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/packaging/qt.conf CONTENT "[Paths]\nPrefix = ..\nPlugins = plugins\n")
    install(FILES ${CMAKE_BINARY_DIR}/packaging/qt.conf DESTINATION bin COMPONENT libraries)
endif()
install(RUNTIME_DEPENDENCY_SET needed PRE_EXCLUDE_REGEXES ${libraries_of_the_system}
        LIBRARY DESTINATION lib COMPONENT libraries)
install(CODE "include(\"${CMAKE_CURRENT_LIST_DIR}/licences.cmake\")" COMPONENT libraries)

if(TARGET pipewright_cuda)
    install(TARGETS pipewright_cuda LIBRARY DESTINATION bin COMPONENT program)
    install(TARGETS pipewright_gpucheck pipewright_slicecheck RUNTIME DESTINATION bin COMPONENT checks OPTIONAL)
    if(TARGET pipewright_second_plugin)
        install(PROGRAMS ${CMAKE_BINARY_DIR}/bin/pipewright_cuda12.so DESTINATION bin COMPONENT program)
        install(PROGRAMS ${CMAKE_BINARY_DIR}/bin/pipewright_gpucheck12 ${CMAKE_BINARY_DIR}/bin/pipewright_slicecheck12
                DESTINATION bin COMPONENT checks)
    endif()
endif()
install(PROGRAMS tests/gpu.sh DESTINATION bin COMPONENT checks)
install(FILES tests/gpu/torchspeed.py DESTINATION bin COMPONENT checks)

install(DIRECTORY resources/ DESTINATION share/pipewright COMPONENT program
        PATTERN screenshots EXCLUDE PATTERN icons EXCLUDE PATTERN __pycache__ EXCLUDE)
install(DIRECTORY executor/torch/pipewright DESTINATION share/pipewright/python COMPONENT program
        PATTERN __pycache__ EXCLUDE)
# The program says itself what its manual page and the completions are. In a sanitizer's build it takes longer.
foreach(file "man man1/pipewright.1 share/man" "bash pipewright share/bash-completion/completions"
             "zsh _pipewright share/zsh/vendor-completions" "fish pipewright.fish share/fish/vendor_completions.d")
    separate_arguments(file UNIX_COMMAND ${file})
    list(POP_FRONT file kind name folder)
    set(made ${CMAKE_BINARY_DIR}/packaging/${kind}/${name})
    get_filename_component(made_in ${made} DIRECTORY)
    file(MAKE_DIRECTORY ${made_in})
    install(CODE "execute_process(COMMAND \"$<TARGET_FILE:pipewright>\" --generate ${kind} OUTPUT_FILE \"${made}\"
                                  COMMAND_ERROR_IS_FATAL ANY)" COMPONENT program)
    get_filename_component(below ${name} DIRECTORY)
    install(FILES ${made} DESTINATION ${folder}/${below} COMPONENT program)
endforeach()
if(TARGET pipewright_gui)
    install(FILES app/packaging/pipewright.desktop DESTINATION share/applications COMPONENT program)
    install(FILES app/packaging/pipewright.xml DESTINATION share/mime/packages COMPONENT program)
    install(FILES resources/icons/pipewright.svg DESTINATION share/icons/hicolor/scalable/apps COMPONENT program)
endif()

# The wheel: the program without Qt and its libraries, in a component of its own that nothing else installs.
set(in_wheel pipewright)
if(TARGET pipewright_without_qt)
    set(in_wheel pipewright_without_qt)
endif()
install(TARGETS ${in_wheel} RUNTIME_DEPENDENCY_SET needed_in_wheel RUNTIME DESTINATION bin COMPONENT wheel EXCLUDE_FROM_ALL)
install(RUNTIME_DEPENDENCY_SET needed_in_wheel PRE_EXCLUDE_REGEXES ${libraries_of_the_system}
        LIBRARY DESTINATION lib COMPONENT wheel EXCLUDE_FROM_ALL)
install(CODE "include(\"${CMAKE_CURRENT_LIST_DIR}/licences.cmake\")"
        COMPONENT wheel EXCLUDE_FROM_ALL)
install(DIRECTORY resources/ DESTINATION share/pipewright COMPONENT wheel EXCLUDE_FROM_ALL
        PATTERN screenshots EXCLUDE PATTERN icons EXCLUDE PATTERN __pycache__ EXCLUDE)
install(DIRECTORY executor/torch/pipewright DESTINATION share/pipewright/python COMPONENT wheel EXCLUDE_FROM_ALL
        PATTERN __pycache__ EXCLUDE)
if(TARGET pipewright_cuda)
    install(FILES ${CMAKE_BINARY_DIR}/bin/pipewright_cuda12.so ${CMAKE_BINARY_DIR}/bin/pipewright_cuda13.so
            DESTINATION bin COMPONENT wheel EXCLUDE_FROM_ALL OPTIONAL)
endif()
find_program(PIPEWRIGHT_PYTHON NAMES python3)
if(PIPEWRIGHT_PYTHON)
    set(staged ${CMAKE_BINARY_DIR}/packaging/wheel)
    add_custom_target(wheel
        COMMAND ${CMAKE_COMMAND} -E rm -rf ${staged}
        COMMAND ${CMAKE_COMMAND} --install ${CMAKE_BINARY_DIR} --prefix ${staged} --component wheel --strip
        COMMAND ${PIPEWRIGHT_PYTHON} ${CMAKE_CURRENT_LIST_DIR}/wheel.py ${staged} ${CMAKE_SOURCE_DIR}/executor/torch
                ${CMAKE_BINARY_DIR}/packages
        VERBATIM)
    add_dependencies(wheel ${in_wheel} gpu_plugins)
endif()

set(CPACK_PACKAGE_NAME pipewright)
set(CPACK_PACKAGE_VENDOR "Pipewright")
# The project has no mailbox, and an address that is somebody's would be worse than one that cannot be (RFC 2606).
set(PIPEWRIGHT_CONTACT "The Pipewright contributors <nobody@pipewright.invalid>" CACHE STRING
    "Who answers for the packages: NAME <ADDRESS>")
set(CPACK_PACKAGE_CONTACT "${PIPEWRIGHT_CONTACT}")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "workbench for pipeline-parallel training schedules")
set(CPACK_PACKAGE_DESCRIPTION
    "Large models are trained in pipelines: every device holds a few layers, and a\nschedule says which device computes what in which order. Pipewright designs\nsuch schedules: drag blocks in a timeline and see the predicted step time, idle\ntime and peak memory. It then trains a real model with exactly that schedule\nand lays the recording over the prediction.")
set(CPACK_GENERATOR TGZ)
find_program(PIPEWRIGHT_DPKG_SHLIBDEPS dpkg-shlibdeps)
if(PIPEWRIGHT_DPKG_SHLIBDEPS)
    list(APPEND CPACK_GENERATOR DEB)
else()
    message(STATUS "The target package makes no .deb: dpkg-shlibdeps was not found (package dpkg-dev)")
endif()
string(TOLOWER "pipewright-${PROJECT_VERSION}-${CMAKE_SYSTEM_NAME}-${CMAKE_SYSTEM_PROCESSOR}" CPACK_PACKAGE_FILE_NAME)
set(CPACK_PACKAGE_DIRECTORY ${CMAKE_BINARY_DIR}/packages)
set(CPACK_PACKAGE_CHECKSUM SHA256)
set(CPACK_STRIP_FILES ON)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_THREADS 0)
set(CPACK_PROJECT_CONFIG_FILE ${CMAKE_CURRENT_LIST_DIR}/bygenerator.cmake)
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_CURRENT_LIST_DIR}/beforepacking.cmake)
set(CPACK_PIPEWRIGHT_BUILD ${CMAKE_BINARY_DIR})
set(CPACK_PIPEWRIGHT_SOURCE ${CMAKE_SOURCE_DIR})
set(CPACK_PIPEWRIGHT_BLAS "")
if(NOT PIPEWRIGHT_STATIC_BLAS)
    get_filename_component(CPACK_PIPEWRIGHT_BLAS ${OPENBLAS_LIBRARY} DIRECTORY)
    if(CPACK_PIPEWRIGHT_BLAS IN_LIST CMAKE_CXX_IMPLICIT_LINK_DIRECTORIES)
        set(CPACK_PIPEWRIGHT_BLAS "")
    endif()
endif()
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "python3, python3-venv")
set(CPACK_DEBIAN_PACKAGE_DEPENDS "")
if(CPACK_PIPEWRIGHT_BLAS)
    set(CPACK_DEBIAN_PACKAGE_DEPENDS "libopenblas0-pthread")
endif()
if(TARGET pipewright_gui)
    list(APPEND CPACK_DEBIAN_PACKAGE_DEPENDS "qt6-qpa-plugins")
    set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "fonts-inter, fonts-jetbrains-mono, fonts-dejavu-core")
endif()
list(JOIN CPACK_DEBIAN_PACKAGE_DEPENDS ", " CPACK_DEBIAN_PACKAGE_DEPENDS)
include(CPack)
