# Settings shared by every target of the tree: language, warnings, sanitizers, output folders.
set(CMAKE_CXX_STANDARD 23)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
if(NOT DEFINED BUILD_SHARED_LIBS)
  set(BUILD_SHARED_LIBS ON)  # one registry and one runtime a process, also for kernels in libraries that the command line opens
endif()
foreach(kind RUNTIME LIBRARY ARCHIVE)
  if(NOT CMAKE_${kind}_OUTPUT_DIRECTORY)
    if(kind STREQUAL RUNTIME)
      set(CMAKE_${kind}_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
    else()
      set(CMAKE_${kind}_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib")
    endif()
  endif()
endforeach()

set(KILN_SANITIZE "" CACHE STRING "Sanitizers, for example address,undefined")
option(KILN_WERROR "Warnings are errors" ON)
find_program(KILN_CCACHE ccache)
if(KILN_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Without this leave, and -fpch-preprocess (below), it keeps nothing that uses a precompiled header.
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CMAKE_COMMAND}" -E env CCACHE_SLOPPINESS=pch_defines,time_macros "${KILN_CCACHE}")
endif()

add_library(kiln_build INTERFACE)
# -Wno-restrict: g++ 12 warns of string assignments that are right (GCC bug 105651).
target_compile_options(kiln_build INTERFACE -Wall -Wextra -Wshadow -Wnon-virtual-dtor -ffp-contract=off
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>
  $<$<BOOL:${KILN_WERROR}>:-Werror> -ffile-prefix-map=${CMAKE_CURRENT_SOURCE_DIR}/=)
if(KILN_SANITIZE)
  target_compile_options(kiln_build INTERFACE -fsanitize=${KILN_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(kiln_build INTERFACE -fsanitize=${KILN_SANITIZE})
endif()

# kiln_like_build(TARGET): the options of kiln_build, without linking it: an archive passes on what it links, and kiln_build is not for others.
function(kiln_like_build target)
  target_compile_options(${target} PRIVATE $<TARGET_PROPERTY:kiln_build,INTERFACE_COMPILE_OPTIONS>)
  target_link_options(${target} PRIVATE $<TARGET_PROPERTY:kiln_build,INTERFACE_LINK_OPTIONS>)
endfunction()

# kiln_area(NAME ...): a library of one area. Sources are the folder's *.cpp files below the given subfolders.
function(kiln_area name)
  cmake_parse_arguments(A "" "" "SUBDIRS;LINK;PRIVATE_LINK" ${ARGN})
  set(sources "")
  foreach(dir ${A_SUBDIRS})
    file(GLOB found CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/${dir}/*.cpp")
    list(APPEND sources ${found})
  endforeach()
  if(sources)
    add_library(kiln_${name} ${sources})
    target_include_directories(kiln_${name} PUBLIC
      $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:include>
      PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
    target_link_libraries(kiln_${name} PUBLIC ${A_LINK} PRIVATE ${A_PRIVATE_LINK})
    kiln_like_build(kiln_${name})
    target_compile_features(kiln_${name} PUBLIC cxx_std_23)
    target_link_options(kiln_${name} PRIVATE -Wl,-Bsymbolic-functions)  # a call within the library goes straight there
  else()
    add_library(kiln_${name} INTERFACE)
    if(IS_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}/include")  # an importing project refuses a folder that does not exist
      target_include_directories(kiln_${name} INTERFACE
        $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:include>)
    endif()
    target_link_libraries(kiln_${name} INTERFACE ${A_LINK})
    target_compile_features(kiln_${name} INTERFACE cxx_std_23)
  endif()
  add_library(kiln::${name} ALIAS kiln_${name})
endfunction()

# kiln_precompile(TARGET HEADER), kiln_precompile(TARGET REUSE_FROM OTHER): as target_precompile_headers(), for ccache too.
function(kiln_precompile target)
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)
  if(ARGV1 STREQUAL "REUSE_FROM")
    target_precompile_headers(${target} REUSE_FROM ${ARGV2})
  else()
    target_precompile_headers(${target} PRIVATE ${ARGV1})
    if(KILN_CCACHE AND CMAKE_CXX_COMPILER_LAUNCHER MATCHES "${KILN_CCACHE}$")  # ours, nobody else's
      set_target_properties(${target} PROPERTIES CXX_COMPILER_LAUNCHER "${CMAKE_SOURCE_DIR}/cmake/precompile_cached.sh;${KILN_CCACHE}")
    endif()
  endif()
endfunction()
