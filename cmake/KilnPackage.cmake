# find_package(kiln), on the build tree (kiln_DIR = the build folder) and on an install tree.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(kiln_exported "")
foreach(name ir runtime dsl autotune codegen)
  if(TARGET kiln_${name})
    set_target_properties(kiln_${name} PROPERTIES EXPORT_NAME ${name})
    get_target_property(kind kiln_${name} TYPE)
    if(NOT kind STREQUAL "INTERFACE_LIBRARY")
      # Beside one another wherever the tree is moved; codegen is opened by name from the runtime's own folder.
      set_target_properties(kiln_${name} PROPERTIES INSTALL_RPATH "$ORIGIN")
    endif()
    list(APPEND kiln_exported kiln_${name})
  endif()
endforeach()
list(APPEND kiln_exported kiln)

install(TARGETS ${kiln_exported} EXPORT kilnTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
if(TARGET kiln_cli)
  set_target_properties(kiln_cli PROPERTIES INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
  install(TARGETS kiln_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
foreach(dir ir/include runtime/include dsl/include autotune/include include)
  if(IS_DIRECTORY "${CMAKE_SOURCE_DIR}/${dir}")
    install(DIRECTORY ${dir}/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h" PATTERN "*.def")
  endif()
endforeach()
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/kiln)
install(EXPORT kilnTargets NAMESPACE kiln:: DESTINATION ${package_dir})
configure_package_config_file(cmake/kilnConfig.cmake.in "${CMAKE_BINARY_DIR}/generated/kilnConfig.cmake" INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file("${CMAKE_BINARY_DIR}/kilnConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_BINARY_DIR}/generated/kilnConfig.cmake" "${CMAKE_BINARY_DIR}/kilnConfigVersion.cmake" DESTINATION ${package_dir})

# The build tree: the same targets with the headers of the source tree.
export(TARGETS ${kiln_exported} NAMESPACE kiln:: FILE "${CMAKE_BINARY_DIR}/kilnTargets.cmake")
configure_file("${CMAKE_BINARY_DIR}/generated/kilnConfig.cmake" "${CMAKE_BINARY_DIR}/kilnConfig.cmake" COPYONLY)
