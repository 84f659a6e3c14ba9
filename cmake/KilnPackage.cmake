# find_package(kiln), on the build tree (kiln_DIR = the build folder) and on an install tree; kiln.pc for pkg-config.
#
# Three components, which are the Debian packages of KilnCPack: `runtime`, all that a program needs whose kernels are embedded; `jit`, the code
# generator, which alone needs LLVM; `dev`, what one builds programs with.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

if(KILN_TESTS)
  set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)  # installing and packing are not to build the tests: build first
endif()
set(kiln_exported "")
set(kiln_pc_libs "")
foreach(name ir runtime dsl autotune codegen tool_main)
  if(NOT TARGET kiln_${name})
    continue()
  endif()
  set_target_properties(kiln_${name} PROPERTIES EXPORT_NAME ${name})
  get_target_property(kind kiln_${name} TYPE)
  if(kind STREQUAL "SHARED_LIBRARY")
    # Beside one another wherever the tree is moved; codegen is opened by name from the runtime's own folder.
    set_target_properties(kiln_${name} PROPERTIES INSTALL_RPATH "$ORIGIN")
    if(NOT name STREQUAL "codegen")
      # Programs of one minor version and another are not linked with each other's libraries.
      set_target_properties(kiln_${name} PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
    endif()
  endif()
  if(NOT kind STREQUAL "INTERFACE_LIBRARY" AND NOT name MATCHES "codegen|tool_main")
    string(PREPEND kiln_pc_libs " -lkiln_${name}")  # who uses stands before who is used
  endif()
  if(name STREQUAL "codegen")
    install(TARGETS kiln_codegen EXPORT kilnTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT jit)
  else()
    install(TARGETS kiln_${name} EXPORT kilnTargets
      LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime NAMELINK_COMPONENT dev
      ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT dev)
  endif()
  list(APPEND kiln_exported kiln_${name})
endforeach()
install(TARGETS kiln EXPORT kilnTargets)
list(APPEND kiln_exported kiln)

if(TARGET kiln_cli)
  file(RELATIVE_PATH libraries "/${CMAKE_INSTALL_BINDIR}" "/${CMAKE_INSTALL_LIBDIR}")
  set_target_properties(kiln_cli PROPERTIES INSTALL_RPATH "$ORIGIN/${libraries}")
  install(TARGETS kiln_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT runtime)
endif()
foreach(dir ir/include runtime/include dsl/include autotune/include include)
  if(IS_DIRECTORY "${CMAKE_SOURCE_DIR}/${dir}")
    install(DIRECTORY ${dir}/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT dev FILES_MATCHING PATTERN "*.h" PATTERN "*.def")
  endif()
endforeach()
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT runtime)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/kiln)
install(EXPORT kilnTargets NAMESPACE kiln:: DESTINATION ${package_dir} COMPONENT dev)
configure_package_config_file(cmake/kilnConfig.cmake.in "${CMAKE_BINARY_DIR}/generated/kilnConfig.cmake" INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file("${CMAKE_BINARY_DIR}/kilnConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_BINARY_DIR}/generated/kilnConfig.cmake" "${CMAKE_BINARY_DIR}/kilnConfigVersion.cmake" cmake/KilnKernels.cmake
  DESTINATION ${package_dir} COMPONENT dev)

file(RELATIVE_PATH kiln_pc_prefix "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
string(REGEX REPLACE "/$" "" kiln_pc_prefix "${kiln_pc_prefix}")
configure_file(cmake/kiln.pc.in "${CMAKE_BINARY_DIR}/generated/kiln.pc" @ONLY)
install(FILES "${CMAKE_BINARY_DIR}/generated/kiln.pc" DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT dev)

# The build tree: the same targets with the headers of the source tree.
export(TARGETS ${kiln_exported} NAMESPACE kiln:: FILE "${CMAKE_BINARY_DIR}/kilnTargets.cmake")
configure_file("${CMAKE_BINARY_DIR}/generated/kilnConfig.cmake" "${CMAKE_BINARY_DIR}/kilnConfig.cmake" COPYONLY)
configure_file(cmake/KilnKernels.cmake "${CMAKE_BINARY_DIR}/KilnKernels.cmake" COPYONLY)
