# SPDX-License-Identifier: Apache-2.0
# Finds LLVM and MLIR and makes their static archives linkable without the
# shared libLLVM.so and libMLIR.so, which Debian's exported targets name.
# This is the one place that names the LLVM version.
set(SPARGEJIT_LLVM_VERSION 22)
# Its version file accepts only an exact "22.1", so the major is checked here.
find_package(MLIR REQUIRED CONFIG
  HINTS /usr/lib/llvm-${SPARGEJIT_LLVM_VERSION}/lib/cmake/mlir)
if(NOT LLVM_VERSION_MAJOR EQUAL SPARGEJIT_LLVM_VERSION)
  message(FATAL_ERROR
    "MLIR ${SPARGEJIT_LLVM_VERSION} is needed, found ${MLIR_VERSION} in ${MLIR_DIR} (set MLIR_DIR)")
endif()
list(APPEND CMAKE_MODULE_PATH ${MLIR_CMAKE_DIR} ${LLVM_CMAKE_DIR})
include(TableGen)
include(AddLLVM)
include(AddMLIR)

add_library(spargejit_llvm INTERFACE)
llvm_map_components_to_libnames(SPARGEJIT_LLVM_COMPONENTS
  core support irreader passes target analysis transformutils targetparser
  nvptxcodegen nvptxdesc nvptxinfo
  x86codegen x86asmparser x86desc x86info orcjit jitlink executionengine)
target_link_libraries(spargejit_llvm INTERFACE ${SPARGEJIT_LLVM_COMPONENTS})
target_include_directories(spargejit_llvm SYSTEM INTERFACE
  ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})
separate_arguments(SPARGEJIT_LLVM_DEFINITIONS NATIVE_COMMAND ${LLVM_DEFINITIONS})
target_compile_definitions(spargejit_llvm INTERFACE ${SPARGEJIT_LLVM_DEFINITIONS})

foreach(target IN LISTS MLIR_EXPORTED_TARGETS)
  if(TARGET ${target})
    get_target_property(links ${target} INTERFACE_LINK_LIBRARIES)
    if(links)
      list(TRANSFORM links REPLACE "^LLVM$" "spargejit_llvm")
      list(REMOVE_ITEM links MLIR)
      set_target_properties(${target} PROPERTIES INTERFACE_LINK_LIBRARIES "${links}")
    endif()
  endif()
endforeach()

# lld links the 100 MB of archives in one second instead of six.
if(EXISTS ${LLVM_TOOLS_BINARY_DIR}/ld.lld)
  add_link_options(-B${LLVM_TOOLS_BINARY_DIR} -fuse-ld=lld)
endif()

# LLVM's archives name libz3, of which no program here calls anything.
add_link_options(-Wl,--as-needed)
