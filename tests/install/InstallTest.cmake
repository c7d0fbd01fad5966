# SPDX-License-Identifier: Apache-2.0
# Installs the library to an empty folder, moves it, and builds and runs the
# programs of consumer/ against it in two ways. Fails at the first step that
# does.

function(step title)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status
    OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${title} failed with ${status}:\n${output}")
  endif()
  message(STATUS "${title}: done")
  set(output "${output}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE ${WORK})
step("install" ${CMAKE_COMMAND} --install ${BUILD} --component library
  --prefix ${WORK}/first)
file(RENAME ${WORK}/first ${WORK}/prefix)
set(library ${WORK}/prefix/${LIBDIR}/libspargejit.so)

# What the library shows and needs.
step("list exports" ${NM} -DC --defined-only ${library})
string(REGEX REPLACE "\n" ";" lines "${output}")
set(exports 0)
foreach(line IN LISTS lines)
  if(line MATCHES "^[0-9a-f]+ [A-Za-z] (.*)")
    if(NOT CMAKE_MATCH_1 MATCHES "^spargejit::[A-Za-z]+(::[A-Za-z]+)?\\(|^spargejit_[a-z_]+$")
      message(FATAL_ERROR "exported, but not public: ${CMAKE_MATCH_1}")
    endif()
    math(EXPR exports "${exports} + 1")
  endif()
endforeach()
if(exports LESS 10)
  message(FATAL_ERROR "expected the public functions among the exports, got ${exports} symbols")
endif()
step("list needed libraries" ${READELF} -d ${library})
if(SELF_CONTAINED)
  string(REGEX MATCHALL "NEEDED[^\n]*" needed "${output}")
  foreach(line IN LISTS needed)
    if(NOT line MATCHES "\\[(libc|libm|ld-linux-[a-z0-9-]+)\\.so")
      message(FATAL_ERROR "expected to need libc and libm alone, got ${line}")
    endif()
  endforeach()
endif()

# How large it is and what is loaded with it; without the compiler, small and free
# of LLVM. `./run test` shows the line.
file(SIZE ${library} bytes)
step("list dependencies" ${LDD} ${library})
string(REGEX MATCHALL "(lib|ld-)[a-z0-9_+-]+\\.so[.0-9]*" dependencies "${output}")
list(REMOVE_DUPLICATES dependencies)
list(JOIN dependencies " " dependencies)
message(STATUS "libspargejit.so: ${bytes} bytes, needs ${dependencies}")
if(NOT HAS_COMPILER)
  if(bytes GREATER 4000000)
    message(FATAL_ERROR "expected at most 4 MB without the compiler, got ${bytes} bytes")
  endif()
  file(STRINGS ${library} traces REGEX "[Mm][Ll][Ii][Rr]-|NVPTX|LLVM ERROR" LIMIT_COUNT 3)
  if(traces)
    message(FATAL_ERROR "expected nothing of LLVM without the compiler, got ${traces}")
  endif()
endif()

# A CMake project that finds the package.
step("configure with find_package" ${CMAKE_COMMAND} -S ${SOURCE} -B ${WORK}/build
  -DCMAKE_C_COMPILER=${C_COMPILER} -DCMAKE_CXX_COMPILER=${COMPILER}
  -DCMAKE_PREFIX_PATH=${WORK}/prefix
  -DCMAKE_BUILD_TYPE=Release)
step("build with find_package" ${CMAKE_COMMAND} --build ${WORK}/build)
foreach(program IN ITEMS consumer without_exceptions c_program)
  step("run ${program}" ${WORK}/build/${program} ${HAS_COMPILER})
endforeach()

# A compiler line with what pkg-config says, by g++ where there is one.
if(PKG_CONFIG)
  set(ENV{PKG_CONFIG_PATH} ${WORK}/prefix/${LIBDIR}/pkgconfig)
  step("ask pkg-config" ${PKG_CONFIG} --cflags --libs spargejit)
  separate_arguments(flags UNIX_COMMAND "${output}")
  find_program(OTHER_COMPILER NAMES g++)
  if(NOT OTHER_COMPILER)
    set(OTHER_COMPILER ${COMPILER})
  endif()
  step("build with pkg-config" ${OTHER_COMPILER} -std=c++20 -O1
    ${SOURCE}/Consumer.cpp ${SOURCE}/Thrower.cpp -o ${WORK}/with_pkg_config
    ${flags} -Wl,-rpath,${WORK}/prefix/${LIBDIR})
  step("run with_pkg_config" ${WORK}/with_pkg_config ${HAS_COMPILER})
endif()
