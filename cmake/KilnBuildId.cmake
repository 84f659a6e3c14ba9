# The build id: a hash over everything that decides what compiled code looks like and how runtime and code generator talk.
# Compiled into both as kiln_build_id.h; when they differ the runtime refuses the code generator.
function(kiln_build_id target)
  if(NOT TARGET kiln_build_id_header)
    file(GLOB_RECURSE inputs CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/ir/*.h" "${CMAKE_SOURCE_DIR}/ir/*.def" "${CMAKE_SOURCE_DIR}/ir/*.cpp"
      "${CMAKE_SOURCE_DIR}/codegen/*.h" "${CMAKE_SOURCE_DIR}/codegen/*.cpp")
    list(APPEND inputs "${CMAKE_SOURCE_DIR}/runtime/include/kiln/runtime/compiler.h")
    list(FILTER inputs EXCLUDE REGEX "/codegen/cli/")
    set(header "${CMAKE_BINARY_DIR}/generated/kiln_build_id.h")
    list(JOIN inputs "|" joined)
    file(GENERATE OUTPUT "${CMAKE_BINARY_DIR}/generated/build_id_inputs.txt" CONTENT "${joined}")
    add_custom_command(OUTPUT "${header}"
      COMMAND ${CMAKE_COMMAND} -DLIST=${CMAKE_BINARY_DIR}/generated/build_id_inputs.txt -DROOT=${CMAKE_SOURCE_DIR}
        -DLLVM=${KILN_LLVM_VERSION} -DOUT=${header} -P ${CMAKE_SOURCE_DIR}/cmake/write_build_id.cmake
      DEPENDS ${inputs} "${CMAKE_SOURCE_DIR}/cmake/write_build_id.cmake" VERBATIM)
    add_custom_target(kiln_build_id_header DEPENDS "${header}")
  endif()
  get_target_property(type ${target} TYPE)
  if(NOT type STREQUAL "INTERFACE_LIBRARY")
    add_dependencies(${target} kiln_build_id_header)
    target_include_directories(${target} PRIVATE "${CMAKE_BINARY_DIR}/generated")
  endif()
endfunction()
