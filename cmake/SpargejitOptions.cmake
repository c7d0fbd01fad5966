# SPDX-License-Identifier: Apache-2.0
# spargejit_options: an interface target with the include root, warnings and
# sanitizer flags that every target of ours uses.
add_library(spargejit_options INTERFACE)
target_include_directories(spargejit_options INTERFACE
  ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/runtime/include)
# Generated code is not held to our warnings.
target_include_directories(spargejit_options SYSTEM INTERFACE ${PROJECT_BINARY_DIR})
target_compile_options(spargejit_options INTERFACE
  -Wall -Wextra -Wshadow -Werror -ffunction-sections -fdata-sections)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # g++ 12 at -O3 reports overlapping memcpy where there is none.
  target_compile_options(spargejit_options INTERFACE -Wno-restrict)
endif()

# Stricter conversions where MLIR's habits do not force the other way.
add_library(spargejit_strict INTERFACE)
target_link_libraries(spargejit_strict INTERFACE spargejit_options)
# clang takes changes of sign in as well, g++ does not: what g++ means is meant.
target_compile_options(spargejit_strict INTERFACE -Wconversion -Wno-sign-conversion)

if(SPARGEJIT_SANITIZE STREQUAL "address")
  target_compile_options(spargejit_options INTERFACE
    -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer -g1)
  target_link_options(spargejit_options INTERFACE -fsanitize=address,undefined)
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    # It reads a type's hash from in front of the function that is called: before
    # the first byte of a compiled kernel there is none, nor even a page.
    target_compile_options(spargejit_options INTERFACE -fno-sanitize=function)
  endif()
elseif(SPARGEJIT_SANITIZE STREQUAL "thread")
  target_compile_options(spargejit_options INTERFACE -fsanitize=thread -fno-omit-frame-pointer -g1)
  target_link_options(spargejit_options INTERFACE -fsanitize=thread)
elseif(NOT SPARGEJIT_SANITIZE STREQUAL "")
  message(FATAL_ERROR "SPARGEJIT_SANITIZE: expected address, thread or empty, got ${SPARGEJIT_SANITIZE}")
endif()
