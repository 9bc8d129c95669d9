# SPDX-License-Identifier: GPL-3.0-or-later
# Run by CPack when the files of a package lie in their places. Of a .deb plugins go where the distribution wants
# them, and its papers come in.
if(NOT CPACK_GENERATOR STREQUAL "DEB")
    return()
endif()
set(usr ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/usr)
# The search paths stay as they were linked: other names share their text, "read" the end of "openblas-pthread", and
# CMake's file(RPATH_CHANGE) and file(RPATH_REMOVE) would blank these too.
file(WRITE ${usr}/share/lintian/overrides/pipewright
     "# /usr/lib, and the pthread build of OpenBLAS, which alone may be called by several threads at once.\n"
     "pipewright: custom-library-search-path *\n")
file(GLOB plugins ${usr}/bin/pipewright_cuda*.so)
foreach(plugin IN LISTS plugins)
    get_filename_component(name ${plugin} NAME)
    file(MAKE_DIRECTORY ${usr}/lib/pipewright)
    file(RENAME ${plugin} ${usr}/lib/pipewright/${name})
    file(CHMOD ${usr}/lib/pipewright/${name} PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
endforeach()

set(papers ${usr}/share/doc/pipewright)
file(MAKE_DIRECTORY ${papers})
file(RENAME ${usr}/share/pipewright/CHANGELOG.md ${papers}/changelog)
file(REMOVE ${usr}/share/pipewright/LICENSE) # it is in /usr/share/common-licenses
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)
file(WRITE ${papers}/changelog.Debian
     "pipewright (${CPACK_PACKAGE_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}) unstable; urgency=medium\n\n"
     "  * What changed is in changelog.gz.\n\n -- ${CPACK_PACKAGE_CONTACT}  ${date}\n")
string(TIMESTAMP year "%Y" UTC)
file(WRITE ${papers}/copyright
     "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\nUpstream-Name: pipewright\n\n"
     "Files: *\nCopyright: ${year} the Pipewright contributors\nLicense: GPL-3+\n"
     " This program is free software: you can redistribute it and/or modify it under\n"
     " the terms of the GNU General Public License as published by the Free Software\n"
     " Foundation, either version 3 of the License, or (at your option) any later\n version.\n .\n"
     " On Debian systems the full text is in /usr/share/common-licenses/GPL-3.\n")
execute_process(COMMAND gzip -9n ${papers}/changelog ${papers}/changelog.Debian ${usr}/share/man/man1/pipewright.1
                COMMAND_ERROR_IS_FATAL ANY)
# Whatever the umask of who packs is.
execute_process(COMMAND chmod -R u=rwX,go=rX ${usr} COMMAND_ERROR_IS_FATAL ANY)
