# kiln_add_kernels(): compiled kernels in a program or library, so that it needs neither a compiler nor LLVM where it runs.
#
#   kiln_add_kernels(TARGET SOURCES file.cpp...   the kernels; nothing of them but their code gets into TARGET
#     [ARCHS sm_80 x86-64-v3 ...]                 what to compile for: PTX for GPUs from one on, code for CPUs of a level
#                                                 (sm_80 x86-64 x86-64-v3 x86-64-v4)
#     [VARIANTS matmul@tile=8 ...]                configs of families beside the default ones; matmul@* is all of its space
#     [MODES own|checked|unchecked ...]           with tests of each access, or without (own: as each kernel says)
#     [BLOCKS 256 16,16 ...]                      block shapes that get CPU code of their own, beside that for any block
#     [NAMESPACE ns] [HEADER name.h]              of the header with the kernels' names (each kernel's own; TARGET_kernels.h)
#     [LIBRARIES lib...])                         what SOURCES need beside Kiln
#
# SOURCES become a program with the command line of Kiln, TARGET_kernels_tool, which compiles its own kernels when TARGET is built. TARGET gets
# their code, the header's folder (to whom links it, too), and kiln::kiln. Where TARGET does not exist, it becomes a static library.
#
# For another machine than this one, the tool is one that was built for this one: KILN_HOST_TOOLS names the folder kiln-tools of a build of the
# same project here (or CMAKE_CROSSCOMPILING_EMULATOR runs it).
include_guard(GLOBAL)

function(_kiln_add_kernels_error text)
  message(FATAL_ERROR "kiln_add_kernels(${target}): ${text}")
endfunction()

function(kiln_add_kernels target)
  set(single NAMESPACE HEADER)
  set(multiple SOURCES ARCHS VARIANTS MODES BLOCKS LIBRARIES)
  cmake_parse_arguments(PARSE_ARGV 1 A "" "${single}" "${multiple}")
  if(DEFINED A_UNPARSED_ARGUMENTS)
    list(JOIN A_UNPARSED_ARGUMENTS " " words)
    _kiln_add_kernels_error("'${words}' belongs to no keyword; there are SOURCES, ARCHS, VARIANTS, MODES, BLOCKS, NAMESPACE, HEADER and LIBRARIES")
  endif()
  if(DEFINED A_KEYWORDS_MISSING_VALUES)
    list(JOIN A_KEYWORDS_MISSING_VALUES ", " words)
    _kiln_add_kernels_error("nothing follows ${words}")
  endif()
  if(NOT A_SOURCES)
    _kiln_add_kernels_error("SOURCES names no file")
  endif()
  if(NOT TARGET kiln::kiln)
    _kiln_add_kernels_error("there is no kiln::kiln; find_package(kiln REQUIRED) comes first")
  endif()
  if(NOT A_ARCHS)
    set(A_ARCHS sm_80 x86-64 x86-64-v3 x86-64-v4)
  endif()
  if(NOT A_MODES)
    set(A_MODES own)
  endif()
  if(NOT A_HEADER)
    set(A_HEADER "${target}_kernels.h")
  endif()
  if(NOT A_HEADER MATCHES "^[^/]+[.](h|hh|hpp|hxx)$")
    _kiln_add_kernels_error("HEADER '${A_HEADER}' is no header's name without a folder")
  endif()

  # Of the symbol, the namespace and the folder.
  string(MAKE_C_IDENTIFIER "${target}_kernels" id)
  get_property(known GLOBAL PROPERTY _kiln_embedded_ids)
  if(id IN_LIST known)  # the target's second call
    string(REGEX REPLACE "[.][^.]*$" "" stem "${A_HEADER}")
    string(MAKE_C_IDENTIFIER "${target}_${stem}" id)
  endif()
  if("${target}/${A_HEADER}" IN_LIST known OR id IN_LIST known)
    _kiln_add_kernels_error("called a second time with the header '${A_HEADER}'; give it another HEADER")
  endif()
  set_property(GLOBAL APPEND PROPERTY _kiln_embedded_ids "${id}" "${target}/${A_HEADER}")

  if(NOT TARGET ${target})
    add_library(${target} STATIC)
  endif()
  get_target_property(kind ${target} TYPE)
  get_target_property(imported ${target} IMPORTED)
  if(imported OR NOT kind MATCHES "^(EXECUTABLE|STATIC_LIBRARY|SHARED_LIBRARY|MODULE_LIBRARY|OBJECT_LIBRARY)$")
    _kiln_add_kernels_error("'${target}' is no executable and no library that is built here, so nothing can be embedded into it")
  endif()

  # The tool. File names in kernels are below the project's folder, the same on every machine; the target's own sources with kernels in them
  # say the same, or its kernels would not be known as those that are embedded.
  set(prefix_maps "")
  foreach(top "${CMAKE_SOURCE_DIR}" "${CMAKE_BINARY_DIR}")
    list(APPEND prefix_maps "$<$<COMPILE_LANGUAGE:CXX>:-fmacro-prefix-map=${top}/=>")
  endforeach()
  set(tool "${id}_tool")
  if(CMAKE_CROSSCOMPILING AND KILN_HOST_TOOLS)
    set(program "${KILN_HOST_TOOLS}/${tool}")
    if(NOT EXISTS "${program}")
      _kiln_add_kernels_error("there is no '${program}'. Build this project for this machine first (target ${tool}); KILN_HOST_TOOLS is the folder kiln-tools of that build")
    endif()
    set(command "${program}")
    set(needs "${program}")
  elseif(CMAKE_CROSSCOMPILING AND NOT CMAKE_CROSSCOMPILING_EMULATOR)
    _kiln_add_kernels_error("kernels are compiled by a program that runs on this machine, and this build is for another one (CMAKE_CROSSCOMPILING). Build this project for this machine first, and give its folder kiln-tools: -DKILN_HOST_TOOLS=BUILD/kiln-tools")
  else()
    if(NOT TARGET kiln::tool_main)
      _kiln_add_kernels_error("this Kiln has no kiln::tool_main: it was built with KILN_CLI=OFF")
    endif()
    add_executable(${tool} ${A_SOURCES})
    target_link_libraries(${tool} PRIVATE kiln::kiln kiln::tool_main ${A_LIBRARIES})
    target_include_directories(${tool} PRIVATE "$<TARGET_PROPERTY:${target},INCLUDE_DIRECTORIES>")
    target_compile_definitions(${tool} PRIVATE "$<TARGET_PROPERTY:${target},COMPILE_DEFINITIONS>")
    target_compile_options(${tool} PRIVATE ${prefix_maps})
    set_target_properties(${tool} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/kiln-tools/$<0:>" EXCLUDE_FROM_ALL ON)
    set(command ${tool})  # through the emulator, where one is named
    set(needs ${tool})
  endif()

  # Its output, all made by one command.
  set(folder "${CMAKE_CURRENT_BINARY_DIR}/kiln/${id}")
  list(JOIN A_ARCHS "," archs)
  list(JOIN A_MODES "," modes)
  set(words emit --emit bundle --arch ${archs} --modes ${modes} --embed ${id} --header ${A_HEADER} --depfile ${id}.d --output "${folder}")
  if(A_NAMESPACE)
    list(APPEND words --namespace ${A_NAMESPACE})
  endif()
  foreach(variant IN LISTS A_VARIANTS)
    list(APPEND words --variant "${variant}")
  endforeach()
  foreach(block IN LISTS A_BLOCKS)
    list(APPEND words --blocks ${block})
  endforeach()
  set(depfile "")
  if(CMAKE_GENERATOR MATCHES "Ninja|Makefiles")
    set(depfile DEPFILE "${folder}/${id}.d")
  endif()
  list(LENGTH A_SOURCES count)
  add_custom_command(OUTPUT "${folder}/${id}.kilnb" "${folder}/${id}.cpp" "${folder}/${A_HEADER}"
    COMMAND ${command} ${words} > "${folder}.log"
    DEPENDS ${needs} ${depfile} COMMENT "Compiling the kernels of ${target}" VERBATIM)
  file(MAKE_DIRECTORY "${folder}")

  # An object library here: a rule is known in its own folder only, and the target may be of another one.
  add_library(${id}_object OBJECT "${folder}/${id}.cpp" "${folder}/${A_HEADER}")
  target_link_libraries(${id}_object PRIVATE kiln::kiln)
  # Else g++ would keep a library loaded that is closed.
  target_compile_options(${id}_object PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fno-gnu-unique>)
  set_target_properties(${id}_object PROPERTIES POSITION_INDEPENDENT_CODE ON EXCLUDE_FROM_ALL ON)
  # It says a checksum of the bundles, so it is another one when they are.
  set_source_files_properties("${folder}/${id}.cpp" PROPERTIES SKIP_PRECOMPILE_HEADERS ON SKIP_UNITY_BUILD_INCLUSION ON)
  if(kind STREQUAL "OBJECT_LIBRARY")  # whose objects are its own only: who links it takes these too
    set_property(TARGET ${target} APPEND PROPERTY INTERFACE_SOURCES "$<BUILD_INTERFACE:$<TARGET_OBJECTS:${id}_object>>")
  else()
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:${id}_object>)
  endif()
  add_dependencies(${target} ${id}_object)  # the header is there before who includes it

  # As properties: target_link_libraries() refuses to mix its two ways, and which one the target uses is its own affair.
  set_property(TARGET ${target} APPEND PROPERTY INCLUDE_DIRECTORIES "${folder}")
  set_property(TARGET ${target} APPEND PROPERTY LINK_LIBRARIES kiln::kiln)
  set_property(TARGET ${target} APPEND PROPERTY COMPILE_OPTIONS ${prefix_maps})
  if(NOT kind STREQUAL "EXECUTABLE")
    set_property(TARGET ${target} APPEND PROPERTY INTERFACE_INCLUDE_DIRECTORIES "$<BUILD_INTERFACE:${folder}>")
    set_property(TARGET ${target} APPEND PROPERTY INTERFACE_LINK_LIBRARIES kiln::kiln)
  endif()
endfunction()
