# SPDX-License-Identifier: GPL-3.0-or-later
# Read by CPack once for each kind of package. A distribution's own libraries serve its package.
if(CPACK_GENERATOR STREQUAL "DEB")
    set(CPACK_INSTALL_CMAKE_PROJECTS "${CPACK_PIPEWRIGHT_BUILD};Pipewright;program;/")
    set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
endif()
